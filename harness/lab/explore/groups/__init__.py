"""Scopes of consumer groups: members, their commits, and a coordinator that is moved.

Nodes are the group coordinator (:mod:`~harness.lab.explore.groups.coordinators`), which is the real core, and the
members of one group (:mod:`~harness.lab.explore.groups.members`). Log partitions are lists of offsets here.
"""
