"""One run: conducted in a world, performed in its directory, and what else it tells: replicas, deaths, changes."""
