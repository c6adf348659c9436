"""Adapters of real clients to the contract of workloads: one file a client library, and one line in the table."""
