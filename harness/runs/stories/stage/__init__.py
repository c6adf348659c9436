"""The stage of a script: the world of its story, its clients, its faults, and the trace of its steps."""
