"""The files of campaigns and runs, a module for each kind. There is no door: a reader of journals needs no Arrow."""
