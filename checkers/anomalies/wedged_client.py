"""``wedged-client``: a producer that wrote nothing more to a log partition to which a new one wrote without trouble.

Example: a broker is dead for a while; when it is back, producer 0 has no write of ``t-0`` acknowledged for longer than
its settings allow, and is replaced by producer 7. Then both write to ``t-0``: 7 is acknowledged each time, 0 never.

This is a finding about a client library, never about the log: it makes no history invalid and breaks no promise. Writes
to which the old producer had no answer stay uncertain.

False alarms avoided: where the successor was not acknowledged throughout, right before each write of the old producer
and after the last, the log partition may not have been writable, and nothing is claimed; nor where the old producer had
one write acknowledged; nor of producers that a fault killed.

Findings, one for each log partition: key, instance, successor, client (library and version), reason (``fatal``: it
refused to send; ``silent``: it was not acknowledged), silent_ms, errors (its last ones), op. O(n) in the rows of such
producers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from checkers.anomalies.anomaly import About, Allowed, Anomaly, Finding, Found
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.words import counted
from workloads.history import NONE

#: Different last errors that are shown of a library.
ERRORS_SHOWN: Final = 3


class WedgedProducer(Finding, kw_only=True):
    """A log partition to which a producer wrote nothing more."""

    instance: int
    successor: int
    client: str
    reason: str
    silent_ms: int
    errors: list[str]
    op: EventPlace

    @property
    def mark(self) -> str:
        """The library's name, without its version."""
        return self.client.rpartition(" ")[0]


def find(log: Log) -> Found:
    """The wedged log partitions of all producers that were given up, those of each in their own order."""
    named = zip(log.partition_history.tolist(), log.partition_key, strict=True)
    partitions = {name: partition for partition, name in enumerate(named)} if any(log.retirements) else {}
    wedged = [
        (partitions[history, key], moment, facts)
        for history, retirements in enumerate(log.retirements)
        for moment, facts in retirements
        for key in facts.wedged
        if (history, key) in partitions
    ]
    rows = [_last_send(log, partition, moment.process) for partition, moment, _ in wedged]

    def describe(number: int) -> WedgedProducer:
        partition, moment, facts = wedged[number]
        return WedgedProducer(
            key=log.partition_key[partition],
            instance=moment.process,
            successor=facts.successor,
            client=facts.client,
            reason=facts.reason,
            silent_ms=facts.silent_ms,
            errors=list(facts.errors),
            op=EventPlace(moment.index),
        )

    return Found(
        partition=np.array([partition for partition, _, _ in wedged], dtype=np.int64),
        describe=describe,
        row=np.array(rows, dtype=np.int64),
    )


def _last_send(log: Log, partition: int, instance: int) -> int:
    rows = log.attempts[(log.partition[log.attempts] == partition) & (log.instance[log.attempts] == instance)]
    return int(rows[-1]) if len(rows) else NONE


class WedgedClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client library that stopped working, over several histories.

    ``producers`` counts those that findings list, which may be capped; ``errors`` are the last of each, the most
    frequent first.
    """

    client: str
    runs: int
    producers: int
    errors: tuple[str, ...]

    def sentence(self) -> str:
        """Tell what happened, to a reader who looks for the log's faults."""
        producers = counted(self.producers, "producer")
        runs = counted(self.runs, "run")
        last = f"; last error: {self.errors[0]}" if self.errors else ""
        return f"Not the log: {producers} of {self.client} stopped working in {runs}, where new ones worked{last}."


def wedged_clients(anomalies: Iterable[Mapping[str, Sequence[Finding]]]) -> list[WedgedClient]:
    """The libraries that stopped working; ``anomalies`` are the findings of each history by anomaly."""
    runs: Counter[str] = Counter()
    producers: Counter[str] = Counter()
    errors: dict[str, Counter[str]] = {}
    for findings in anomalies:
        named = (finding for finding in findings.get(ANOMALY.name, ()) if isinstance(finding, WedgedProducer))
        instances = {(finding.client, finding.instance): finding for finding in named}
        runs.update({client for client, _ in instances})
        for (client, _), finding in instances.items():
            producers[client] += 1
            errors.setdefault(client, Counter()).update(finding.errors[-1:])
    return [
        WedgedClient(
            client=client,
            runs=runs[client],
            producers=producers[client],
            errors=tuple(text for text, _ in errors[client].most_common(ERRORS_SHOWN)),
        )
        for client in sorted(producers)
    ]


ANOMALY: Final = Anomaly.documented("wedged-client", __doc__, WedgedProducer, find, Allowed.ALWAYS, about=About.CLIENTS)
