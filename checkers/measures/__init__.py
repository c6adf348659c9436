"""What is measured of a history without being right or wrong: availability, exercise, delivery, lag, consume counts."""
