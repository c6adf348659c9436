"""Measurements, never tests: speed of the simulator, of the cluster of processes, and of the harness itself."""
