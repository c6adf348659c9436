"""Kafka's own Java client: its JVM, the calls to it, and the adapter."""
