"""The files of campaigns and runs."""
