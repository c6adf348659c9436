"""Measures of a history, which are neither right nor wrong: availability, exercise, delivery, lag, consume counts."""
