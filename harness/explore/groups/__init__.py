"""Scopes of consumer groups: members, their commits, and a coordinator that is moved.

Nodes are the group coordinator (:mod:`~harness.explore.groups.coordinators`), which is the real core, and the members
of one group (:mod:`~harness.explore.groups.members`). Log partitions are lists of offsets here.
"""
