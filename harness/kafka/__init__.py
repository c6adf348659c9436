"""Apache Kafka on this machine: its jars, its configuration, its start."""
