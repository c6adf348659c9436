"""Names the defect behind a finding by a short digest, so that campaigns can count it and look it up.

An identity is of a cause, as far as a run can tell causes apart, and not of the look of one night. It is made of

* the anomaly. Findings about the same writes have one cause, and the identity of the first anomaly among them in the
  order of :data:`checkers.anomalies.ANOMALIES`: a lost write is not seen, is skipped by polls, and tears its
  transaction. What nothing permits never takes the identity of something permitted;
* the settings on which a promise depends;
* the mark (:attr:`checkers.anomalies.Finding.mark`): a client's library, a broken invariant, or that the write is in
  the log all the same.

Seeds, offsets, times, values, nodes, the world, the family and the scenario of faults are not part of it: the same
weakness shows with all of them. Two causes that are alike in all of this have one identity, so an acceptance
(:mod:`checkers.verdicts.acceptance`) also asks how often it shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final, TypeAlias

import msgspec

from checkers.anomalies import ANOMALIES, Finding
from checkers.anomalies.anomaly import VALUE_FIELDS
from checkers.verdicts.verdict import Verdict
from workloads import NEVER, SettingValue

#: Settings under Kafka's names.
Values: TypeAlias = Mapping[str, SettingValue]
#: Settings on which a promise depends (:mod:`checkers.verdicts.promises`), under Kafka's names. Others are times and
#: sizes; they decide whether a weakness shows, and do not change it.
MATTERING: Final = (
    "acks",
    "enable.idempotence",
    "replication.factor",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "flush.messages",
    "truncation",
    "strict.min.isr",
    "isr.join.epoch.rule",
    "fetch.fencing",
    "broker.epochs",
    "eligible.leader.replicas",
    "retries",
    "max.in.flight.requests.per.connection",
    "planted.bug",
)
#: Such settings that came later, and the values in force before; with those, identities stay as they were.
LATER: Final = {
    "unclean.elections": True,
    "commit.rule": "isr",
    "quorum.required.acks": -1,
    "leader.election": "isr",
    "auto.offset.reset": "earliest",
    "commit.mode": "after-processing",
    "group.protocol": "classic",
    "isolation.level": "read_uncommitted",
}
#: Hexadecimal digits of an identity: a campaign has tens of defects, never millions.
DIGITS: Final = 12
#: A write: its log partition and its value.
_Write: TypeAlias = tuple[object, object]
#: The place of each anomaly among those that may be about the same writes.
_ORDER: Final = {name: number for number, name in enumerate(ANOMALIES)}


def identity(anomaly: str, settings: Values, mark: str) -> str:
    """The digest of a finding's defect."""
    content = msgspec.json.encode([anomaly, mattering(settings), mark], order="sorted")
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def mattering(settings: Values) -> dict[str, SettingValue]:
    """The part of ``settings`` on which a promise depends, the same for all that promise the same."""
    chosen = {name: settings[name] for name in MATTERING if name in settings}
    chosen |= {name: settings[name] for name, before in LATER.items() if settings.get(name, before) != before}
    # Of these settings only this matters: flushed after each record, sent again at all, several at a time.
    chosen["flush.messages"] = chosen.get("flush.messages", NEVER) == 1
    chosen["retries"] = _above(chosen.get("retries", 1), 0)
    in_flight = "max.in.flight.requests.per.connection"
    chosen[in_flight] = _above(chosen.get(in_flight, 2), 1)
    return chosen


def _above(value: SettingValue, least: int) -> bool:
    return isinstance(value, (int, float)) and value > least


def identities(verdict: Verdict, settings: Values, broken: Set[str] = frozenset()) -> dict[str, dict[str, str]]:
    """By anomaly, the identities of its findings with the mark of each; that of the first listed finding first.

    ``broken`` are the anomalies that nothing permits.
    """
    by_anomaly: dict[str, dict[str, str]] = {}
    of_write: dict[_Write, tuple[str, str]] = {}
    for anomaly in sorted(verdict.anomalies, key=lambda name: (name not in broken, _ORDER[name])):
        findings = verdict.anomalies[anomaly]
        roots = [
            next((of_write[write] for write in _writes(finding) if write in of_write), None) for finding in findings
        ]
        own = [finding.mark for finding, root in zip(findings, roots, strict=True) if root is None]
        # Which writes the others are about, where there are more than are listed, is not known: they go with these.
        if verdict.counts.get(anomaly, 0) > len(findings):
            own = [] if any(roots) else [*own, *(moment.mark for moment in verdict.moments.get(anomaly, ()))]
        of_mark = {mark: identity(anomaly, settings, mark) for mark in dict.fromkeys(own)}
        by_anomaly[anomaly] = dict([*filter(None, roots), *((name, mark) for mark, name in of_mark.items())])
        for finding, root in zip(findings, roots, strict=True):
            if root is None and finding.mark in of_mark:
                defect = (of_mark[finding.mark], finding.mark)
                of_write |= {write: defect for write in _writes(finding) if write not in of_write}
    return by_anomaly


def _writes(finding: Finding) -> Iterator[_Write]:
    for name, content in msgspec.structs.asdict(finding).items():
        if name in VALUE_FIELDS:
            each: Any = content if isinstance(content, list) else [content]
            yield from ((finding.key, value) for value in each if isinstance(value, int | str))
