"""A Kafka cluster that exists already, as a world."""
