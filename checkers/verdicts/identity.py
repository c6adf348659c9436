"""Names the defect behind a finding by a short digest, so that campaigns can count it and look it up.

The identity is made of the anomaly, the settings on which a promise depends, the scenario in whose window the finding
fell, and the fate of the copies, or the client library that it is about. Seeds, offsets, times, values, nodes and the
world are not part of it: the same weakness shows with all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

import msgspec

from checkers.anomalies import Finding
from checkers.verdicts.verdict import Verdict
from nemesis.receipts import Receipt
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


class _Scenario(NamedTuple):
    """A group of faults that took effect: its window on the run's clock (end None: never), its name and its kinds."""

    begun_us: int
    ended_us: int | None
    name: str
    kinds: tuple[str, ...]


def identity(
    anomaly: str, settings: Mapping[str, SettingValue], scenarios: Sequence[tuple[str, Sequence[str]]], fate: str
) -> str:
    """The digest of a finding's defect. ``scenarios`` are (name, kinds of fault). ``fate`` is :attr:`Finding.mark`: the
    fate of the copies, a client's library, or a broken invariant's name; "" if not known.
    """
    chosen = {name: settings[name] for name in MATTERING if name in settings}
    chosen |= {name: settings[name] for name, before in LATER.items() if settings.get(name, before) != before}
    # Of these settings only this matters: flushed after each record, sent again at all, several at a time.
    chosen["flush.messages"] = chosen.get("flush.messages", NEVER) == 1
    chosen["retries"] = _above(chosen.get("retries", 1), 0)
    in_flight = "max.in.flight.requests.per.connection"
    chosen[in_flight] = _above(chosen.get(in_flight, 2), 1)
    content = msgspec.json.encode([anomaly, chosen, sorted(scenarios), fate], order="sorted")
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _above(value: SettingValue, least: int) -> bool:
    return isinstance(value, (int, float)) and value > least


def identities(verdict: Verdict, settings: Values, receipts: Sequence[Receipt]) -> dict[str, dict[str, str]]:
    """By anomaly, the identities of its findings with the mark of each; that of the first listed finding first.

    A finding without a moment (a cycle, replicas that differ) belongs to all scenarios of the run.
    """
    scenarios = _scenarios(receipts)
    by_anomaly: dict[str, dict[str, str]] = {}
    for anomaly in verdict.anomalies:
        each = [(time_us, finding.mark) for finding, time_us in _listed(verdict, anomaly)]
        each += [(moment.time_us, moment.mark) for moment in verdict.moments.get(anomaly, ())]
        by_anomaly[anomaly] = {
            identity(anomaly, settings, _around(time_us, scenarios), mark): mark
            for time_us, mark in dict.fromkeys(each)
        }
    return by_anomaly


def named(verdict: Verdict, settings: Values, receipts: Sequence[Receipt]) -> Iterator[tuple[str, Finding]]:
    """Each listed finding with its identity."""
    scenarios = _scenarios(receipts)
    for anomaly in verdict.anomalies:
        for finding, time_us in _listed(verdict, anomaly):
            yield identity(anomaly, settings, _around(time_us, scenarios), finding.mark), finding


def _listed(verdict: Verdict, anomaly: str) -> Iterator[tuple[Finding, int | None]]:
    findings = verdict.anomalies[anomaly]
    return zip(findings, verdict.times_us.get(anomaly) or [None] * len(findings), strict=True)


def _scenarios(receipts: Sequence[Receipt]) -> list[_Scenario]:
    """The groups of faults that took effect, in order of time."""
    effective = sorted((receipt for receipt in receipts if receipt.took_effect), key=lambda receipt: receipt.group)
    scenarios = []
    for _, group in groupby(effective, key=lambda receipt: receipt.group):
        faults = list(group)
        ends = [fault.ended_us for fault in faults if fault.ended_us is not None]
        scenarios.append(
            _Scenario(
                begun_us=min(fault.begun_us for fault in faults),
                ended_us=max(ends) if len(ends) == len(faults) else None,
                name=faults[0].story,
                kinds=tuple(sorted({fault.degraded_to or fault.fault for fault in faults})),
            )
        )
    return sorted(scenarios, key=lambda scenario: scenario.begun_us)


def _around(time_us: int | None, scenarios: Sequence[_Scenario]) -> list[tuple[str, tuple[str, ...]]]:
    """The scenarios in whose window a moment lies, else the next one to begin, else the last.

    A dying leader takes writes with it that were acknowledged just before it died. So a loss belongs to the scenario
    that begins next rather than to one that had ended.
    """
    if time_us is None:
        chosen = list(scenarios)
    else:
        over = [scenario for scenario in scenarios if scenario.ended_us is None or scenario.ended_us >= time_us]
        chosen = [scenario for scenario in over if scenario.begun_us <= time_us] or over[:1] or list(scenarios[-1:])
    return sorted({(scenario.name, scenario.kinds) for scenario in chosen})
