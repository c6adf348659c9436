"""Eras: the rules of replication that one release of Apache Kafka had, as defaults for the settings that switch them.

Each is the next newer one without its changes; docs/reference/replication-rules.md has the rules and their sources. A
release between two of them works as the older one does, unless it brought a switch of its own. From 3.5 on they are
KRaft's rules, before it ZooKeeper's. What a release waits for beside its own code is in :data:`NOT_BY_RELEASE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

#: The era that presets nothing: every rule as it is since 3.7, without Kafka's defects.
NO_ERA: Final = "none"

#: By era, newest first: the differences from the era before in this list (from no era at all, for the first).
_OLDER: Final[Mapping[str, Mapping[str, Any]]] = {
    # Releases 3.3 to 4.3 keep what followers had (rule 30, docs/findings/002-missed-epoch.md); older ones are taken to.
    # All load one batch of each producer (rule 21, docs/findings/005-restart-forgets-batches.md).
    "4.1": {"eligible.leader.replicas": True, "missed.epoch": "kafka", "producers.after.restart": "last-batch"},
    "3.9": {"eligible.leader.replicas": False},
    "3.7": {"unclean.elections": False},
    "3.5": {"strict.min.isr": False},
    "2.8": {"broker.epochs": False, "unclean.elections": True},
    "2.1": {"truncation": "kip-320"},
    "2.0": {"truncation": "kip-279", "fetch.fencing": False, "isr.join.epoch.rule": False},
    "0.11": {"truncation": "kip-101"},
    "0.10.2": {"truncation": "high-watermark", "unclean.leader.election.enable": True},
    "0.8.2": {"replica.lag.max.messages": 4_000},
}
#: The rules that wait for more than a release: for KRaft, a feature's level or a protocol (rules 6, 14, 16, 17, 20).
NOT_BY_RELEASE: Final = ("broker.epochs", "unclean.elections", "truncation", "fetch.fencing")
_BY_LOG: Final = {"leader.election": "largest-epoch-and-log-end"}
#: Rules that were proposed and never released, or are for comparison (rules 27, 28): differences from no era at all.
_PROPOSED: Final[Mapping[str, Mapping[str, Any]]] = {
    "kip250": {"quorum.required.acks": 2, "leader.election": "largest-log-end"},
    "kip250-fixed": {"quorum.required.acks": 2, **_BY_LOG},
    "raft": {"commit.rule": "majority", **_BY_LOG},
}


def _presets() -> Mapping[str, Mapping[str, Any]]:
    rules: dict[str, Any] = {}
    presets: dict[str, Mapping[str, Any]] = {NO_ERA: MappingProxyType({})}
    for era, changes in _OLDER.items():
        rules = {**rules, **changes}
        presets[era] = MappingProxyType(rules)
    presets |= {era: MappingProxyType(changes) for era, changes in _PROPOSED.items()}
    return MappingProxyType(presets)


#: Defaults under Kafka's names by era, for the settings that differ from :class:`workloads.settings.Settings`' own.
PRESETS: Final = _presets()
