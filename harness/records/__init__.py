"""The files of campaigns and runs, a module for each kind; no door, for who reads a journal needs no Arrow."""
