"""Assesses a configuration: group by group, promises, stories that were performed, known defects and risks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from checkers import counted, promise_under
from harness.assess.causes import COMPACTION, Blamed, Causes, causes_of, unperformed
from harness.assess.changes import HARDENING, AdvisedChange, Surroundings, binding, filled, with_changes
from harness.assess.client_settings import effective
from harness.assess.configuration import Client, Cluster, Question
from harness.assess.defects import Applied, defects_of, needs_met
from harness.assess.demands import answered_by, refuses_all, unmet_demand, unwritable
from harness.assess.grouping import TopicGroup, groups_of, whole
from harness.assess.limits import limits_of, require_known
from harness.assess.performing import Performer, families_of, possible, stories
from harness.assess.present_state import broken_now
from harness.assess.prices import measured_of
from harness.assess.reckoning import COPIES_MAX, THE_BROKERS, of_members, settings_of
from harness.assess.repeating import command_of, command_that_shows
from harness.assess.risks import risks_of
from harness.assess.rules_in_force import keeper_of
from harness.assess.sentences import begun
from harness.broker.core.types import OFFSETS_TOPIC
from harness.ground.progress import Progress
from harness.records.assessment_file import Assessed, Assessment, Concern, Promised, ShownStory, Unclear
from workloads import NEVER, Settings

#: Faults after which every copy is as it was.
OF_PROCESSES_AND_LINKS: Final = ("kill", "pause", "partition", "restart", "rolling", "move", "controller", "slow-link")
#: Faults that destroy copies.
OF_COPIES: Final = ("power", "wipe", "corrupt", "log-directory")
#: Defects of the reference broker's, which it has in common with Kafka, and the findings about them.
_FINDINGS: Final = {"missed.epoch": "finding-002", COMPACTION: "finding-006"}
_PROMISES: Final = "docs/explained/promises.md"
_EXPLAINED: Final = "docs/reference/stories.md#{}"
#: The settings of a producer that decide.
_OF_PRODUCERS: Final = ("acks", "enable.idempotence", "max.in.flight.requests.per.connection")
_MIN_ISR: Final = "min.insync.replicas"


class _Judging(NamedTuple):
    """The results of a group's stories, its settings, and the surroundings of its changes."""

    causes: Causes
    settings: Mapping[str, object]
    around: Surroundings
    performer: Performer


def assess(question: Question, performer: Performer, progress: Progress) -> Assessment:
    """The assessment of every group of topics with every producer.

    Promises are those under the usual families of faults, and under those that are asked about.

    Raises:
        PlanError: nothing is known of the release.
    """
    cluster, producers, consumers, _ = question
    require_known(cluster.release)
    pairs = [
        (group, producer, consumer)
        for group in groups_of(cluster)
        for producer in ([THE_BROKERS] if group.internal else producers)
        for consumer in (_members(consumers) if group.topics == (OFFSETS_TOPIC,) else [None])
    ]
    assessed = []
    for number, (group, producer, consumer) in enumerate(pairs, 1):
        progress.say(f"group {number} of {len(pairs)}: {counted(len(group.topics), 'topic')}")
        assessed.append(_assessed(group, producer, consumer, question, performer))
    measured = any(concern.measured for each in assessed for concern in (*each.concerns, *each.left))
    return Assessment(
        source=cluster.source,
        release=cluster.release.words if cluster.release else "",
        brokers=cluster.brokers,
        groups=tuple(assessed),
        limits=tuple(limits_of(cluster, producers, consumers, measured=measured)),
        unread=cluster.unread,
    )


def _members(consumers: Sequence[Client]) -> Sequence[Client | None]:
    """The consumers that are members of groups, those with the same settings once; None where none is named."""
    members = {str(of_members(each)): each for each in consumers if "group.id" in each.settings}
    return list(members.values()) or [None]


def _assessed(
    group: TopicGroup, producer: Client, member: Client | None, question: Question, performer: Performer
) -> Assessed:
    cluster, producers, consumers, families = question
    writing = producers if group.internal else [producer]
    transactional = any("transactional.id" in each.settings for each in writing)
    settings = settings_of(group, producer, cluster) | ({} if member is None else of_members(member))
    parts: tuple[TopicGroup | Cluster | Client, ...] = (group, cluster, producer, *consumers)
    not_understood = dict.fromkeys(each for part in parts for each in part.not_understood)
    assessed = Assessed(
        topics=group.topics,
        partitions=group.partitions,
        replicas=group.replicas,
        racks=group.racks,
        settings=_shown_settings(group, producer),
        producer=f"{producer.name} ({producer.library} {producer.version}".rstrip()
        + (")" if member is None else f"), members as {member.name}"),
        unclear=tuple(Unclear(sentence=each.words, name=each.name, at_best=each.at_best) for each in not_understood),
    )
    around = _surroundings(group, producer, cluster)
    settings |= {_MIN_ISR: min(around.demanded, group.replicas, COPIES_MAX)}
    if why_not := possible(settings):
        unclear = Unclear(sentence=f"{producer.name} with {group.topics[0]} cannot be performed: {why_not}")
        return msgspec.structs.replace(assessed, unclear=(*assessed.unclear, unclear))
    chosen = Settings.from_mapping(settings)
    refused = refuses_all(chosen, around)
    causes = (
        unperformed(chosen, without=answered_by(chosen))
        if refused
        else causes_of(settings, performer, transactional=transactional)
    )
    demand = unwritable(chosen, around) if refused else unmet_demand(chosen, around)
    judging = _Judging(causes, settings, around, performer)
    met = needs_met(group, cluster, producer, consumers)
    applied = list(defects_of(cluster, [producer, *consumers], met))
    return msgspec.structs.replace(
        assessed,
        promised=() if refused else tuple(_promised(chosen, families)),
        concerns=(
            *broken_now(group),
            *([demand] if demand else []),
            *_weaknesses(judging, internal=group.internal),
            *(_defect(each, judging) for each in applied),
            *risks_of(group, cluster, producer, consumers),
        ),
        left=tuple(_left(judging, {each.defect.name for each in applied})),
        performed=causes.performed - len(causes.unknown),
        departed=causes.departed,
        unknown=tuple(
            f"{each.story}: {each.wrong}; step by step: {command_of(each.story, settings)}" for each in causes.unknown
        ),
    )


def _surroundings(group: TopicGroup, producer: Client, cluster: Cluster) -> Surroundings:
    keeper = keeper_of(cluster)
    return Surroundings(
        brokers=cluster.brokers,
        racks=group.racks,
        release=cluster.release,
        zookeeper=None if keeper is None else keeper == "zookeeper",
        producer=producer,
        demanded=whole(group.settings[_MIN_ISR], 1),
        binding=binding(cluster.release),
    )


def _shown_settings(group: TopicGroup, producer: Client) -> dict[str, str]:
    values = effective(producer)
    topic = {name: value for name, value in group.settings.items() if value != str(NEVER)}
    return {"replication.factor": str(group.replicas), **topic, **{name: values[name] for name in _OF_PRODUCERS}}


def _promised(settings: Settings, families: Sequence[str]) -> Iterator[Promised]:
    """The promise under each family, families with one sentence together."""
    by_sentence: dict[tuple[bool, str], list[str]] = {}
    for family in dict.fromkeys((*OF_PROCESSES_AND_LINKS, *OF_COPIES, *families)):
        promise = promise_under(settings, [family])
        by_sentence.setdefault((not promise.permits_loss, begun(promise.sentence())), []).append(family)
    for (kept, sentence), under in by_sentence.items():
        yield Promised(families=tuple(under), kept=kept, sentence=sentence)


def _weaknesses(judging: _Judging, *, internal: bool) -> Iterator[Concern]:
    """Every recommended change that is missing; one that no story here shows the need of is a risk."""
    causes, settings, around, performer = judging
    chosen = Settings.from_mapping(settings)
    for change in causes.recommended:
        if internal and change.name == "idempotence":
            continue
        blamed = [each for each in causes.weak if change.name in each.changes]
        yield Concern(
            kind="weakness" if blamed else "risk",
            name=change.name,
            sentence=filled(change.weakness, chosen.to_mapping()),
            shown=tuple(_shown(each, change) for each in blamed),
            command=command_that_shows(blamed[0], settings, performer) if blamed else "",
            change=change.advice(chosen, around),
            price=change.price,
            measured=measured_of([change.name]),
            link=_EXPLAINED.format(blamed[0].story.lower()) if blamed else _PROMISES,
        )


def _shown(blamed: Blamed, change: AdvisedChange | None = None) -> ShownStory:
    return ShownStory(
        story=blamed.story,
        title=stories()[blamed.story].title,
        harm=str(blamed.harm),
        records=blamed.records,
        families=families_of(blamed.story),
        link=_EXPLAINED.format(blamed.story.lower()),
        together=tuple(
            name for name in blamed.changes if blamed.together and change is not None and name != change.name
        ),
    )


def _defect(applied: Applied, judging: _Judging) -> Concern:
    """A defect, with the stories that show it where the reference broker has it, too."""
    defect = applied.defect
    shown = [each for each in judging.causes.left if _FINDINGS.get(each.defect) == defect.name]
    unsure = "" if applied.sure else f", unless yours is {applied.since} or later" if applied.since else ""
    return Concern(
        kind="defect",
        name=defect.name,
        sentence=f"{defect.title}: {defect.harm}{unsure}",
        shown=tuple(_shown(each) for each in shown),
        command=command_that_shows(shown[0], judging.settings, judging.performer) if shown else "",
        change=defect.change,
        price=defect.price,
        measured=measured_of([defect.measured], "" if defect.of == "kafka" else defect.of),
        link=defect.link,
    )


def _left(judging: _Judging, defects: Collection[str]) -> Iterator[Concern]:
    """Harm that no recommended setting prevents, by the hardening that does; without that of ``defects``."""
    causes, settings, around, performer = judging
    ideal = with_changes(settings, causes.recommended)
    by_change: dict[tuple[str, ...], list[Blamed]] = {}
    for each in causes.left:
        if _FINDINGS.get(each.defect) not in defects:
            by_change.setdefault(each.changes, []).append(each)
    hardening = {change.name: change for change in HARDENING}
    for names, blamed in by_change.items():
        chosen = [hardening[name] for name in names]
        yield Concern(
            kind="weakness",
            name=f"left-to-{'-or-'.join(names) or 'chance'}",
            sentence=f"no recommended setting prevents this{', but this change does' if chosen else ''}",
            shown=tuple(_shown(each) for each in blamed),
            command=command_that_shows(blamed[0], ideal, performer),
            change=", or ".join(change.advice(Settings.from_mapping(ideal), around) for change in chosen),
            price="; ".join(change.price for change in chosen),
            measured=measured_of(names),
        )
