"""Schemas of messages that kafka-python does not have, as Apache Kafka 4.3.1 ships them (``common/message`` in its
clients' jar, Apache-2.0).
"""
