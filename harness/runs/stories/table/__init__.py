"""The table of stories: their files, their columns, and their cells."""
