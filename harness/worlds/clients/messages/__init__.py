"""Fields of messages that kafka-python lacks, in version 0 (KIP-853, KIP-631, KIP-848), in the form that it reads."""
