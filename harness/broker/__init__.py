"""The reference broker: its core, which knows no I/O, and the server around it."""
