"""Finds replicas that stay out of the ISR although nothing hinders them any more."""

from __future__ import annotations

from collections.abc import Callable

from harness.broker.core.types import BrokerConfig
from nemesis.cluster import ClusterView, PartitionView

#: After healing: twice as long as what was cut off takes to be noticed, to be asked again, and to follow.
PATIENCE_TIMES = 2


def patience_us(config: BrokerConfig) -> int:
    """The time after healing within which every replica is back in the ISR."""
    times_ms = config.broker_session_timeout_ms, config.replica_lag_time_max_ms, config.replica_socket_timeout_ms
    return PATIENCE_TIMES * sum(times_ms) * 1000


def out_of_sync(view: ClusterView, damaged: Callable[[str, int], bool]) -> dict[str, str]:
    """The log partitions that lack a leader or an in-sync replica although all is healed, and what they lack.

    ``damaged`` tells of a log partition and a broker whether its log has a bad batch.
    """
    lacks = {name: _lack(state, view, name, damaged) for name, state in view.partitions.items()}
    return {name: lack for name, lack in lacks.items() if lack}


def _lack(state: PartitionView, view: ClusterView, name: str, damaged: Callable[[str, int], bool]) -> str:
    running = {*view.running}
    if state.leader is None:
        may_lead = sorted({*state.isr, *state.elr} & running)
        return f"it has no leader, though {_brokers(may_lead)} may lead it" if may_lead else ""
    missing = sorted(({*state.replicas} - {*state.isr}) & running)
    if state.leader not in running or not missing or damaged(name, state.leader):
        return ""
    return f"not in its ISR: {_brokers(missing)}"


def _brokers(nodes: list[int]) -> str:
    return ", ".join(f"broker {node}" for node in nodes)
