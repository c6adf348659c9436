"""Faults, the scenarios and schedules that say when they come, and the player that begins and ends them."""
