"""A slow judge of small histories, written from the pages of the anomalies alone."""
