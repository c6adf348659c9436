"""Clients that are programs: the messages, the process and the adapters."""
