"""Scopes of transactions: message orders and fencing, without the replication of what is written.

Nodes are the transaction coordinator and the leaders of log partitions
(:mod:`~harness.lab.explore.transactions.servers`), which are the real core, and the producers of one transactional id
(:mod:`~harness.lab.explore.transactions.producers`).
"""
