"""One run: its phases, its schedule or script, and a cluster to break by hand."""
