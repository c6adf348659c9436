"""The floor of every room: this machine, errors, chance, observations, known defects, progress."""
