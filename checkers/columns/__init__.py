"""A log partition as arrays: rows, ids, version order, steps, phases, and the replicas' own logs.

Arrays are NumPy's: ``Numbers`` are int64, ``Flags`` are bool, columns as stored keep the narrower types of
:mod:`workloads.history.schema`. Each has one entry for every

* *history* of a batch, in the order of :attr:`checkers.columns.loading.RowBatch.histories`;
* *partition*: the index of one log partition of one history;
* *row*: a micro-operation of an event, ordered by (partition, event index, position);
* *value*: a different (partition, value) that was sent or read, see :class:`checkers.columns.ids.Ids`;
* *offset id*: a different (partition, offset) at which a value was seen,

and where an array holds numbers of another domain, ``of row: value id`` says which. -1 means no such thing.
"""
