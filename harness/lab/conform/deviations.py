"""Known ways in which Kafka shows another state than the core, each a rule that says from the core's states which.

A rule is of no story. It looks at the steps until now, at what the core showed after each, and says what Kafka shows
where the core shows that. A difference is a known deviation if Kafka shows just this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from harness.lab.conform.shown import ANSWER, NO_ANSWER
from harness.runs.stories import HEALED, WHOLE, questions
from workloads import Settings

#: Facts that are shown after a step, by name.
Facts = Mapping[str, Any]
_TRY: Final = re.compile(r"try( in [^:]*:)? ")


class CourseStep(NamedTuple):
    """A step that was performed, how long it lasted on Kafka, and what the core showed at its end."""

    text: str
    lasted_ms: int
    core: Facts

    @property
    def words(self) -> list[str]:
        """The words of the step, without those that let it fail."""
        return _TRY.sub("", self.text, count=1).split()

    @property
    def frees_links(self) -> bool:
        """True if messages may pass again that did not."""
        return self.text == HEALED or self.words[0] in {"heal", "release"}

    def names(self, verb: str) -> set[int]:
        """The brokers that the step names, where it begins with this verb; all that are dead are named by `all`."""
        first, *others = self.words
        if first != verb and not (verb == "start" and self.text == WHOLE):
            return set()
        every = self.text == WHOLE or others == ["all"]
        return {*range(self.core["number of replicas"])} if every else {int(word) for word in others if word.isdigit()}


class Course(NamedTuple):
    """The steps of a story until now, the last one included, with its settings.

    ``real`` is what Kafka shows now, with this ``client``, "" if its trace does not say.
    """

    steps: Sequence[CourseStep]
    settings: Settings
    real: Facts
    client: str = ""

    def last(self, verb: str) -> int | None:
        """The index of the last step that begins with this verb."""
        return max((index for index, step in enumerate(self.steps) if step.words[0] == verb), default=None)


#: Makes the facts that Kafka shows otherwise, from a course and what the core shows now.
Rule = Callable[[Course, Facts], Facts]


class Deviation(NamedTuple):
    """A known way in which Kafka shows another state than the core; ``source`` is where to see the reason."""

    name: str
    source: str
    rule: Rule

    @property
    def why(self) -> str:
        """The reason, in a sentence or two."""
        return " ".join((self.rule.__doc__ or "").split())


_KNOWN: Final[list[Deviation]] = []


def known_deviations() -> Sequence[Deviation]:
    """All of them, in the order in which they change what the core shows."""
    return _KNOWN


def shown_by_kafka(course: Course, core: Facts) -> Mapping[str, tuple[Any, str]]:
    """The facts that Kafka shows otherwise where the core shows these: the value, and the deviations that say so."""
    changed: dict[str, tuple[Any, str]] = {}
    for deviation in _KNOWN:
        others = deviation.rule(course, {**core, **{fact: value for fact, (value, _) in changed.items()}})
        for fact, value in others.items():
            names = [changed[fact][1]] if fact in changed else []
            changed[fact] = (value, " and ".join([*names, deviation.name]))
    return changed


def _deviation(name: str, source: str) -> Callable[[Rule], Rule]:
    def noted(rule: Rule) -> Rule:
        _KNOWN.append(Deviation(name, source, rule))
        return rule

    return noted


def _more(core: Facts, fact: str, number: int) -> Facts:
    return {fact: core[fact] + number} if number and fact in core else {}


@_deviation("order of preference", "`_preferring` in harness/worlds/real/leadership.py, `keep_order` in story_world.py")
def _planned_moves(course: Course, core: Facts) -> Facts:
    """A planned move on Kafka is three changes of the partition, but to the first of the replicas while the last one
    leads: the replicas are put in another order, the leader is elected, and conform puts the order back. The reference
    broker's controller only elects."""
    moves = 0
    for before, step in pairwise(course.steps):
        if step.words[:3] == ["move", "leader", "to"]:
            to, leader, order = int(step.words[3]), before.core["leader"], before.core["assigned"]
            last = [node for node in order if node == leader != to]
            moves += (to, *(node for node in order if node not in {to, leader}), *last) != tuple(order)
    return _more(core, "partition epoch", 2 * moves)


@_deviation(
    "emptied directory",
    "KIP-858; ReplicaManager.scala `maybeUpdateTopicAssignment`, `handleAssignReplicasToDirs` of the controller",
)
def _emptied_directories(course: Course, core: Facts) -> Facts:
    """A broker whose disk was emptied makes a new log directory with an id of its own, and tells the controller that
    its replica is there now, which is a change of the partition. The reference broker's directories have no ids."""
    return _more(core, "partition epoch", sum(len(nodes) for _, nodes in _first_starts(course.steps)))


def _first_starts(steps: Sequence[CourseStep]) -> Iterator[tuple[int, set[int]]]:
    """The indices of steps in which brokers were started whose disks had been emptied, with these."""
    emptied: set[int] = set()
    for index, step in enumerate(steps):
        emptied |= step.names("wipe")
        if started := emptied & step.names("start"):
            emptied -= started
            yield index, started


@_deviation("not elected at its first start", "KIP-858; ReplicationControlManager.java `LeaderAcceptor`")
def _missed_elections(course: Course, core: Facts) -> Facts:
    """A broker whose disk was emptied is unfenced before it has told the controller where its replica is, and no
    replica in an unknown directory is elected. If it returns alone, nothing asks for an election then: it leads from
    its second start on. The reference broker's directories have no ids, so there it leads at its first start, and dies
    as leader."""
    changed: dict[str, Any] = {}
    for first, nodes in _first_starts(course.steps):
        if len(course.steps[first].names("start")) > 1:
            continue
        (node,), before = nodes, course.steps[first - 1].core
        again = next((i for i, step in enumerate(course.steps) if i > first and node in step.names("start")), None)
        run = [*(step.core for step in course.steps[first : again or -1]), *([] if again else [core])]
        if before["leader"] is None and node in {state["leader"] for state in run}:
            missed = run[-1]["leader epoch"] - before["leader epoch"]
            changed |= dict(_without_epochs({**core, **changed}, before["leader epoch"], missed))
            if again is None and core["leader"] == node:
                changed |= {"leader": None, f"broker {node}: leading": False}
    return changed


def _without_epochs(core: Facts, since: int, missed: int) -> Iterator[tuple[str, Any]]:
    """The facts of leader epochs, had there not been those that followed ``since``."""
    for fact, value in core.items():
        if fact in {"leader epoch", "partition epoch"}:
            yield fact, value - missed
        elif fact.endswith(": leader epoch") and value > since:
            yield fact, max(since, value - missed)
        elif fact.endswith(": epochs"):
            begun = [(int(epoch), rest) for epoch, _, rest in (entry.partition(" ") for entry in value)]
            yield (
                fact,
                tuple(
                    f"{epoch if epoch <= since else epoch - missed} {rest}"
                    for epoch, rest in begun
                    if not since < epoch <= since + missed
                ),
            )


@_deviation("fenced as it stops", "ReplicationControlManager.java `processBrokerHeartbeat`: `SHUTDOWN_NOW`")
def _fenced_early(course: Course, core: Facts) -> Facts:
    """Kafka's controller fences a broker as it lets it stop in order. The reference broker's notes that it leaves,
    which has the same effect on elections and on ISRs, and fences it when its session ends."""
    stopped: set[int] = set()
    for step in course.steps:
        stopped = (stopped | step.names("stop")) - step.names("start")
    return {"fenced": tuple(sorted({*core["fenced"]} | stopped & {*course.real["fenced"]}))} if stopped else {}


@_deviation(
    "marker sent again",
    "request.timeout.ms of brokers, in TransactionMarkerChannelManager.scala; replica.socket.timeout.ms, `_pursue`",
)
def _repeated_markers(course: Course, core: Facts) -> Facts:
    """A leader that does not answer for a marker is sent it again: by Kafka's coordinator after 30 s, by the reference
    broker's after 2 to 3 s, and each is appended. So its log is longer by the markers that were sent again."""
    states = [*(step.core for step in course.steps[:-1]), core]
    again = 0
    for fact in (fact for fact in core if fact.startswith(questions.TRANSACTIONAL_ID)):
        begun: int | None = None
        for before, state in pairwise(states):
            if str(state.get(fact, "")).startswith("Prepare"):
                begun = _markers(before) if begun is None else begun
            elif begun is not None and fact in state:
                again += max(0, _markers(state) - begun - 1)
                begun = None
    ends = [fact for fact in core if fact == questions.STABLE_END or fact.endswith("high watermark")]
    return {fact: value for end in ends for fact, value in _more(core, end, -again).items()}


def _markers(state: Facts) -> int:
    """The number of markers in the leader's log, which shows records alone."""
    leader = f"broker {state['leader']}: "
    return int(state.get(f"{leader}high watermark", 0)) - len(state.get(f"{leader}log", ()))


@_deviation("asked by the leader", "KIP-890, part 2; docs/decisions/038-a-coordinator-leads-one-log.md")
def _refused_by_the_leader(course: Course, core: Facts) -> Facts:
    """Under version 2 Kafka's leader adds its log partition to a transaction, and answers when the coordinator fences
    the producer. Here producers add it under both versions, so nothing is sent to the leader."""
    superseded: set[str] = set()
    producers: dict[str, str] = {}
    changed: dict[str, Any] = {}
    for step in course.steps if course.settings.transaction_version > 1 else ():
        match step.words:
            case ["init", _, "after", producer]:
                superseded.add(producer)
            case ["begin", transaction, "by", producer]:
                producers[transaction] = producer
            case ["write" | "send", record, "in", transaction, *_] if producers.get(transaction) in superseded:
                if core.get(f"{ANSWER}{record}", NO_ANSWER) == NO_ANSWER:
                    changed[f"{ANSWER}{record}"] = "InvalidProducerEpochError"
    return changed


@_deviation(
    "appended below min ISR", "CoordinatorPartitionWriter.scala `append` (October 2024) appends with acks=1; rule 3"
)
def _refused_commits(course: Course, core: Facts) -> Facts:
    """Kafka's coordinator of groups appends a commit with fewer in-sync replicas than min ISR, too, and answers when it
    is committed, or its time is over. Where its log comes back the commit counts. The reference broker's refuses it at
    once."""
    last = course.last("poll")
    if last is None or questions.COMMITTED not in core:
        return {}
    before, then = course.steps[last - 1].core, course.steps[last].core
    below = len(before.get(questions.ISR, course.steps)) < course.settings.min_insync_replicas
    came_back = core[questions.EPOCHS] > then.get(questions.EPOCHS, 0)
    if not below or not came_back or core.get(questions.LEADER) != then[questions.LEADER]:
        return {}
    return {questions.COMMITTED: max(core[questions.COMMITTED], _end(then))}


def _end(state: Facts) -> int:
    """The offset behind all that readers are given."""
    return int(state.get(f"broker {state['leader']}: high watermark", 0))


@_deviation("waits for the coordinator that is cut off", "`_lost` in harness/worlds/simulated/group_consumer.py")
def _waits_for_the_old_coordinator(course: Course, core: Facts) -> Facts:
    """The model of a member sends its commit to the coordinator that it knows, which is cut off, and waits for
    request.timeout.ms. In three of three performances librdkafka's had its answer from the next one within three
    seconds."""
    polls = [index for index, step in enumerate(course.steps) if step.words[0] in {"join", "poll"}]
    if len(polls) < 2 or questions.COMMITTED not in core:
        return {}
    old, since = course.steps[polls[-2]].core.get(questions.LEADER), course.steps[polls[-1] :]
    cut_off = old != core[questions.LEADER] and core.get(f"broker {old}: running") and old in core["fenced"]
    if not cut_off or sum(step.lasted_ms for step in since) > course.settings.request_timeout_ms:
        return {}
    return {questions.COMMITTED: max(core[questions.COMMITTED], _end(core))}


@_deviation("keeps what it has", "KIP-848, `uniform` assignor; rule 43")
def _keeps_what_it_has(course: Course, core: Facts) -> Facts:
    """Kafka's assignor moves no more than it must: a member keeps the log partition until it leaves, and then the other
    one is given it in its next poll. The reference broker's assigns by the order of the members' names: the first one
    gives it up to a second one that takes it in its next poll."""
    owner, changed = "", dict[str, Any]()
    for before, step in pairwise(course.steps):
        verb, *named = step.words
        owners = [fact for fact, value in before.core.items() if _OF_MEMBER.match(fact) and value]
        if verb == "join" and owners and before.core.get(questions.ASSIGNED) == 1:
            owner = owners[0]
            changed = {owner: True, _assigned(named[0]): False, questions.ASSIGNED: 1}
        elif verb in {"leave", "crash"} and _assigned(named[0]) == owner:
            owner, changed = "", {questions.ASSIGNED: 0} if verb == "leave" else {}
        elif verb == "poll" and not owner:
            changed = {}
    return {fact: value for fact, value in changed.items() if fact in core}


_OF_MEMBER: Final = re.compile(r"member \S+: assigned")


def _assigned(member: str) -> str:
    return f"member {member}: assigned"


@_deviation("version 1 of transactions", "KIP-890; librdkafka has no EndTxn of version 5")
def _without_new_epochs(course: Course, core: Facts) -> Facts:
    """librdkafka ends transactions by version 1: no end raises the producer epoch. The reference broker's clients speak
    version 2, and so does Kafka's Java client, with which stories of transactions are performed now."""
    if course.client != "confluent-kafka" or course.settings.transaction_version < 2:
        return {}
    ends = sum(step.words[0] in {"commit", "abort"} for step in course.steps)
    words = {fact: value.rpartition(" ") for fact, value in core.items() if fact.startswith(questions.TRANSACTIONAL_ID)}
    return {fact: f"{state} {int(epoch) - ends}" for fact, (state, _, epoch) in words.items() if int(epoch) >= ends}


@_deviation(
    "asks again later", "SAME_LOOKS_FREED in harness/runs/stories/stage/pauses.py; socket.connection.setup.timeout.ms"
)
def _asks_again_later(course: Course, core: Facts) -> Facts:
    """A follower that was cut off fetches again when its next attempt to connect succeeds. On a busy machine that is
    later than the rest after the step that frees its links, and Kafka shows it as it was before."""
    if len(course.steps) < 2 or not course.steps[-1].frees_links:
        return {}
    before, real = course.steps[-2].core, course.real
    late = {node for node in core["isr"] if node not in before["isr"] and node not in real["isr"]}
    changed = {**_more(core, "partition epoch", -len(late))}
    for fact in {"isr", f"broker {core['leader']}: isr", questions.ISR} & core.keys():
        changed[fact] = tuple(node for node in core[fact] if node not in late)
    for node in late:
        of = f"broker {node}: "
        changed |= {fact: before[fact] for fact in core if fact.startswith(of) and fact in before}
    return changed if late and all(real.get(fact, value) == value for fact, value in changed.items()) else {}
