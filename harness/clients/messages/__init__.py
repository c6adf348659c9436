"""Fields of messages that kafka-python does not have, in version 0 (KIP-853, KIP-631), in the form that it reads."""
