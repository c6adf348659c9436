"""A script: its grammar, its steps in order, and who performs them."""
