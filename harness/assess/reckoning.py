"""The settings, as the simulation and the promises know them, that one group and one producer have together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.assess.client_settings import effective, excluded
from harness.assess.configuration import Client, Cluster
from harness.assess.grouping import TopicGroup, whole, whole_ms
from harness.assess.performing import OF_MEMBERS
from harness.assess.rules_in_force import ends_safely, has_sequences, rules_of
from workloads import NO_ERA, Settings

#: Brokers write Kafka's own topics, and wait for every replica in sync.
THE_BROKERS: Final = Client(name="the brokers themselves", library="java", assumed=True)
#: Limits and intervals, which no promise depends on.
TIMES: Final = (
    "request.timeout.ms", "delivery.timeout.ms", "retry.backoff.ms", "linger.ms", "replica.lag.time.max.ms",
    "replica.fetch.wait.max.ms", "replica.fetch.backoff.ms", "broker.session.timeout.ms",
    "broker.heartbeat.interval.ms", "unclean.leader.election.interval.ms",
)  # fmt: skip
#: The most that a setting of a simulated run takes: an hour, and less for a request.
_MOST_MS: Final[Mapping[str, int]] = {"request.timeout.ms": 539_999}
_HOUR_MS: Final = 3_600_000
#: The session of members where none is given: Kafka's default since 3.0.
_SESSION_MS: Final = 45_000
#: The words of client libraries for the end of a log.
LATEST: Final = ("latest", "largest", "end")
#: More replicas change no answer, and take long to simulate.
COPIES_MAX: Final = 9


def settings_of(group: TopicGroup, producer: Client, cluster: Cluster) -> dict[str, object]:
    """The settings under which stories of the group are performed, under Kafka's names; what is as usual is left out.

    Values that a simulated run cannot have, such as a limit of days, are cut to the nearest that it can.
    """
    client = effective(producer)
    idempotent = client["enable.idempotence"] == "true" and excluded(client) is None
    values = rules_of(cluster, group) | {
        "acks": client["acks"],
        "enable.idempotence": idempotent and has_sequences(cluster, group),
        "replication.factor": min(group.replicas, COPIES_MAX),
        "min.insync.replicas": whole(group.settings["min.insync.replicas"], 1),
        "unclean.leader.election.enable": group.settings["unclean.leader.election.enable"] == "true",
    }
    if client["retries"] == "0":
        values["retries"] = 0
    values["max.in.flight.requests.per.connection"] = int(client["max.in.flight.requests.per.connection"])
    if "transactional.id" in client and not ends_safely(cluster, producer):
        values["transaction.version"] = 1
    if group.compacted:
        values["cleanup.policy"] = "compact"
    if group.settings["flush.messages"] == "1":
        values["flush.messages"] = 1
    for name in TIMES:
        value = whole_ms(client.get(name) or cluster.broker_setting(name), 0)
        values[name] = min(max(value, 1 if name != "linger.ms" else 0), _MOST_MS.get(name, _HOUR_MS))
    # librdkafka takes a request limit beyond the limit of the delivery; then the shorter one acts.
    spare_ms = _number(values, "delivery.timeout.ms") - _number(values, "linger.ms")
    values["request.timeout.ms"] = max(10, min(_number(values, "request.timeout.ms"), spare_ms))
    return _unusual(values)


def of_members(consumer: Client) -> dict[str, object]:
    """The settings of a group's members in the simulation."""
    values = effective(consumer)
    reset = "latest" if values["auto.offset.reset"] in LATEST else "earliest"
    session_ms = min(whole(values.get("session.timeout.ms", ""), _SESSION_MS), _HOUR_MS)
    mode = "auto" if values["enable.auto.commit"] == "true" else "after-processing"
    return dict(zip(OF_MEMBERS, (mode, reset, session_ms), strict=True))


def _number(values: Mapping[str, object], name: str) -> int:
    return int(str(values[name]))


def _unusual(values: dict[str, object]) -> dict[str, object]:
    """The values without those that are usual, so that the command that repeats a story is short."""
    era = str(values.get("era", NO_ERA))
    usual = Settings.from_mapping({"era": era}).to_mapping()
    always = ("era", "acks", "min.insync.replicas")
    return {name: value for name, value in values.items() if name in always or usual[name] != value}
