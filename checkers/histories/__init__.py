"""Where histories lie and how they are found: files and stores, the discovery of histories, scratch directories."""
