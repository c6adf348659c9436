"""This machine, for every room: its size and versions, its Java, files that survive a loss of power."""
