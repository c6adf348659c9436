"""Cycles of dependencies between operations: ``G0``, ``G1c`` and their ``-realtime`` forms.

Example of ``G1c``: a transaction sends ``a`` and reads ``b``, another one sends ``b`` and reads ``a``: each must have
come after the other. ``G0`` is a cycle of nothing but overwrites (ww): one sends ``x=1 y=1``, one sends ``x=2 y=2``;
in ``x`` the first comes first, in ``y`` the second. In a ``-realtime`` form one step says that an operation was
acknowledged before the next was begun: a poll that returned a value before its send was begun is ``G1c-realtime``.

Dependencies: *ww* from the writer of a value to the writer of the next value of the log partition (only where ww_deps
is on); *wr* from the writer of a value to everybody who read it; *realtime* from an acknowledged operation to every
one begun later. A process does one thing after the other, so its order is part of real time. Offsets at which several
values were seen say nothing about order.

Where no operation depends on another at all, histories of other tools get ``empty-transaction-graph``. The reference
tool also reports, for each strongly connected component, that it exists: ``PL-1-cycle-exists`` beside ``G0``,
``PL-2-cycle-exists`` beside ``G1c``, and ``strong-`` before both for the ``-realtime`` forms. That is its note for
components whose search it may give up after a second. Here every component is told by a cycle in it, and these notes,
which say nothing more, are left out.

Three steps, so that only what may be on a cycle ever becomes a graph:

1. :mod:`checkers.cycles.edges` finds dependencies in the columns. Where no operation that sends does anything else, a
   log partition decides alone, by a running maximum, which operations are suspect.
2. :mod:`checkers.cycles.trimming` takes the *tight* dependencies (the later operation was begun before the earlier was
   acknowledged) of a history with transactions and leaves the few operations that may be on a cycle.
3. :mod:`checkers.cycles.search` finds, with networkx, the strongly connected components of what is left, and a shortest
   cycle of each kind in each of them.
"""
