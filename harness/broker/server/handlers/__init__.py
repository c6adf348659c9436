"""The requests of clients at a broker, by kind: data, cluster, groups.

``gateway`` leads into the core; ``membership`` is the state machine of consumer groups, ``committed`` their offsets.
"""
