"""Everything that is done to the core and to clients to learn about Kafka, by one folder each."""
