"""Cycles of dependencies between operations: ``G0``, ``G1c`` and their ``-realtime`` forms.

Their specifications: :mod:`checkers.anomalies.cycles`.

The reference tool also reports, for each strongly connected component, that it exists: ``PL-1-cycle-exists`` beside
``G0``, ``PL-2-cycle-exists`` beside ``G1c``, and ``strong-`` before both for the ``-realtime`` forms. That is its note
for components whose search it may give up after a second. Here every component is shown by a cycle in it, and these
notes, which say nothing more, are left out.

Three steps, so that only operations that may be on a cycle become a graph:

1. :mod:`checkers.cycles.edges` finds dependencies in the columns. Where no operation that sends does anything else, a
   log partition decides alone, by a running maximum, which operations are suspect.
2. :mod:`checkers.cycles.trimming` takes the *tight* dependencies (the later operation was begun before the earlier was
   acknowledged) of a history with transactions and leaves the few operations that may be on a cycle.
3. :mod:`checkers.cycles.search` finds, with networkx, the strongly connected components of what is left, and a shortest
   cycle of each kind in each of them.
"""
