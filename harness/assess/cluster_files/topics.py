"""Makes the topics of a cluster: their replicas, and their settings by where these are from.

Its own value counts before what a running broker says it has, which may be inherited. The listing of kafka-topics.sh
says both in one column, and what the controller decides it reads from its own node, not from the brokers that the
listing asks (``KafkaConfigSchema.resolveEffectiveTopicConfig``, KAFKA-12670).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from harness.assess.cluster_files.evidence import Declared, ReadPartition, ReadValue, Slot, TopicSaid
from harness.assess.cluster_files.nodes import Chosen
from harness.assess.cluster_files.worst import worst_first
from harness.assess.configuration import OF_TOPICS, NotUnderstood, Now, Topic

UNCLEAN: Final = "unclean.leader.election.enable"
IN_SYNC: Final = "min.insync.replicas"
_SET: Final = "set it on the topic or for the whole cluster with kafka-configs.sh"
_GIVE: Final = f"{_SET}, or assess files with the controllers' server.properties among them"
_OLD: Final = "both cannot be true of one moment; leave out the file that is not of today"
_BY_FILE: Final = "the controllers decide by their own value, not by the brokers' (KAFKA-12670)"
_BY_FEATURE: Final = (
    "a cluster that Kafka 4.1 or later made has the controllers' value, before every broker's file (KIP-966); an older "
    "one may not"
)


class Inheritance(NamedTuple):
    """Settings that topics inherit, and of unclean elections and of replicas in sync the controllers' own.

    ``controllers`` has no entry where the brokers decide alone: no node is a broker only, or the release asks no one.
    """

    of_brokers: Mapping[str, Chosen]
    controllers: Mapping[str, Chosen]


def topic_of(name: str, said: TopicSaid, inheritance: Inheritance, racks: Mapping[int, str], replication: int) -> Topic:
    """The topic; ``replication`` is the number of replicas of one that says none."""
    settings, unclear = _settings(said, inheritance)
    partitions = said.partitions.values()
    declared = said.declared or Declared(None, None)
    replicas = min((len(partition.replicas) for partition in partitions), default=declared.replicas or replication)
    return Topic(
        name=name,
        partitions=len(partitions) or declared.partitions or 1,
        replicas=replicas,
        racks=racks_of({partition.replicas for partition in partitions}, racks),
        settings=settings,
        now=_now(partitions),
        not_understood=tuple(sorted({*said.not_understood, *unclear}, key=lambda each: each.words)),
    )


def racks_of(placements: Iterable[tuple[int, ...]], racks: Mapping[int, str]) -> int | None:
    """The least number of racks in which the replicas of one log partition are; None where a rack is not known."""
    each = [{racks.get(broker) for broker in placement} for placement in placements]
    return None if any(None in own for own in each) else min(map(len, each), default=None)


def _settings(said: TopicSaid, inheritance: Inheritance) -> tuple[dict[str, str], list[NotUnderstood]]:
    settings: dict[str, str] = {}
    unclear: list[NotUnderstood] = []
    for name in OF_TOPICS:
        slot = said.own.get(name) or said.shown(name)
        unclear += _drift(name, said.own.get(name), said.shown(name))
        controllers = inheritance.controllers.get(name)
        if controllers is not None and name not in said.own:
            slot, doubts = _DECIDED[name](said, slot, inheritance.of_brokers[name], controllers)
            unclear += doubts
        elif slot is None:
            unclear += inheritance.of_brokers[name].unclear
        if isinstance(slot, ReadValue):
            settings[name] = slot.value
        elif slot is not None:
            unclear.append(slot)
    return settings, unclear


def _drift(name: str, own: Slot | None, shown: Slot | None) -> Iterator[NotUnderstood]:
    """The doubt about a topic's own value that a running cluster does not show: one of the two is not of today."""
    if isinstance(own, ReadValue) and isinstance(shown, ReadValue) and own.value != shown.value:
        best = worst_first(name, [own.value, shown.value])[-1]
        text = f"{name}={own.value}, and {name}={shown.value} in {shown.where}"
        yield NotUnderstood(where=own.where, text=text, why=_OLD, name=name, at_best=own.value == best)


def _unclean(
    said: TopicSaid, shown_by_broker: Slot | None, brokers: Chosen, controllers: Chosen
) -> tuple[Slot | None, Collection[NotUnderstood]]:
    """Decide who may be elected: the topic's own value, or the controllers'; a broker shows its own, too."""
    default = OF_TOPICS[UNCLEAN].default
    mine, theirs = brokers.value or default, controllers.value or default
    shown = None if said.owned_whole else shown_by_broker
    if isinstance(shown, NotUnderstood):
        return shown, ()
    value = mine if shown is None else shown.value
    if controllers.is_known and shown is None:
        return ReadValue(theirs, "the controllers"), controllers.unclear
    own = shown is not None and brokers.is_known and mine != value
    if own or (value == theirs and not controllers.unclear):
        return shown, ()
    has = "the brokers have" if brokers.is_known else "the listing, which may show the brokers' value, has"
    return _doubt(UNCLEAN, f"{has} {value}", value, controllers)


def _in_sync(
    _: TopicSaid, shown_by_broker: Slot | None, brokers: Chosen, controllers: Chosen
) -> tuple[Slot | None, Collection[NotUnderstood]]:
    """Decide how many must be in sync: where replicas are eligible that left the ISR, the controllers' file may decide.

    A cluster that is made with that feature, or gets it, writes the controllers' value as that of the whole cluster
    (``ConfigurationControlManager.maybeGenerateElrSafetyRecords``, KIP-966): it counts before every broker's file.
    """
    if shown_by_broker is not None:
        return shown_by_broker, ()
    default = OF_TOPICS[IN_SYNC].default
    mine, theirs = brokers.value or default, controllers.value or default
    if mine == theirs or (not controllers.is_known and brokers.value is None):
        return None, brokers.unclear
    slot, doubts = _doubt(IN_SYNC, f"the brokers have {mine}", mine, controllers)
    return slot, (*doubts, *brokers.unclear)


_DECIDED: Final = {UNCLEAN: _unclean, IN_SYNC: _in_sync}


def _doubt(name: str, has: str, value: str, controllers: Chosen) -> tuple[ReadValue, tuple[NotUnderstood, ...]]:
    """The best of a value that was read and of the controllers', and the doubt which of them counts."""
    theirs = controllers.value or OF_TOPICS[name].default
    why = _BY_FILE if name == UNCLEAN else _BY_FEATURE
    text = f"{has}, the controllers have {theirs}" if controllers.is_known else f"{has}, the controllers are not known"
    way_out = _SET if controllers.is_known else _GIVE
    doubt = NotUnderstood(where=name, text=text, why=f"{why}; {way_out}", name=name, at_best=True)
    return ReadValue(worst_first(name, [value, theirs])[-1], name), (doubt,)


def _now(partitions: Collection[ReadPartition]) -> Now:
    in_sync = [(partition.isr, partition.replicas) for partition in partitions if partition.isr is not None]
    return Now(
        leaderless=sum(not partition.leader for partition in partitions),
        behind=sum(len(isr) < len(replicas) for isr, replicas in in_sync),
        in_sync=min((len(isr) for isr, _ in in_sync), default=None),
        eligible=tuple(sorted({broker for each in partitions if not each.leader for broker in each.eligible})),
    )
