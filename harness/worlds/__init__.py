"""The clusters that a run may break: simulated, real, existing; all behind ``contract.py``."""
