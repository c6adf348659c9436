"""A counterexample as a story file that `ackproof stories` performs (docs/guides/stories.md).

In a story everything happens by itself, and the script says what does not happen yet. So fetches and the controller's
decisions are held from the beginning on all links, and what arrives in the counterexample is released for a moment.
Not every counterexample has words there: a story knows no message that overtakes another of its kind on one link, no
part of a log that is lost, and no broker elected against the order of assignment. Whether a script does what the
counterexample does is found out by performing it (:func:`lost_in`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from harness.broker.core import messages
from harness.lab.explore.any_scope import AnyScope
from harness.lab.explore.brokers import BrokerCopy, members
from harness.lab.explore.rules import record_name
from harness.lab.explore.scope import Scope
from harness.lab.explore.search import Result
from harness.lab.explore.searched import Action, Next, State
from harness.lab.explore.space import Space
from harness.runs.stories import Story, lines_of, parse_story, perform_cell
from nemesis.faults import Fault, Kill, MoveLeader, PowerLoss, WipeDisk
from workloads import in_toml

#: As long as a story waits for what arrives at once, and for an answer to a fetch that waits at its leader.
_MOMENT: Final = "wait 50 ms"
_ANSWER: Final = "wait 600 ms"
#: As long as it takes until a follower asks again whose fetches were dropped.
_ASKED_AGAIN: Final = "wait 2500 ms"
#: Time limits of Kafka's own defaults, so that no broker leaves the ISR or dies because of what is held.
_PATIENT: Final = {
    "replica.lag.time.max.ms": 30_000,
    "broker.session.timeout.ms": 9_000,
    "broker.heartbeat.interval.ms": 2_000,
    "request.timeout.ms": 30_000,
    "delivery.timeout.ms": 120_000,
}
#: Followers that leave the ISR do so soon.
_IMPATIENT: Final = {**_PATIENT, "replica.lag.time.max.ms": 2_000}
#: Settings that columns choose, with the column of each choice.
_COLUMNS: Final = {
    (False, False): "all/2",
    (True, False): "all/2/E",
    (False, True): "all/2/F",
    (True, True): "all/2/EF",
}


def column_of(scope: AnyScope) -> str:
    """The column of settings in which the scope's stories are performed."""
    settings = scope.chosen
    return _COLUMNS[settings.eligible_leader_replicas, settings.flush_messages == 1]


def story_text(scope: AnyScope, result: Result) -> str | None:
    """The story file of a counterexample; None where the story language has no words for it."""
    if not isinstance(scope, Scope):
        return None
    story = _StoryLines(scope, result)
    lines = story.lines()
    if lines is None:
        return None
    settings = {name: value for name, value in scope.settings.items() if name not in _CHOSEN_BY_COLUMNS}
    waits = _IMPATIENT if story.a_broker_leaves else _PATIENT
    return "\n".join(
        [
            'number = "X1"',
            f'title = "The shortest way to a breach of {result.broken[0] if result.broken else "nothing"}"',
            f'source = "ackproof explore {scope.name}"',
            f'note = "for the column {column_of(scope)}"',
            "steps = '''",
            *lines,
            "'''",
            "",
            "[settings]",
            *(f'"{name}" = {in_toml(value)}' for name, value in {**waits, **settings}.items()),
            "",
        ]
    )


def lost_in(text: str, scope: AnyScope) -> tuple[str, ...]:
    """The records that are lost where the story is performed in virtual time, in the scope's column."""
    return perform_cell(read(text), column_of(scope)).lost


def read(text: str) -> Story:
    """A story of its text."""
    return parse_story(text, "counterexample.toml")


_CHOSEN_BY_COLUMNS: Final = frozenset({"acks", "min.insync.replicas", "eligible.leader.replicas", "flush.messages"})


class _Moment(NamedTuple):
    """A step of the counterexample, the brokers before it, and the decisions of the controller that it makes."""

    action: Action
    before: Sequence[BrokerCopy]
    decided: range


class _StoryLines:
    """The steps of a story as lines, decisions as late as they can come: nothing can be held behind another."""

    def __init__(self, scope: Scope, result: Result) -> None:
        self._scope = scope
        self._trace = result.trace
        self._space = Space(scope)
        self._moments = self._decided_late(list(self._walk()))
        self._fates = {
            (step.action.broker, self._image_of(step.action)): step.action.kind
            for step in self._trace
            if step.action.wire is not None and step.action.wire.kind == "metadata"
        }
        self._deaf: set[int] = set()
        self._outsiders = list(range(scope.constants.in_sync, scope.constants.brokers))
        self.a_broker_leaves = bool(self._outsiders) or any(step.action.kind == "silent" for step in self._trace)

    def lines(self) -> list[str] | None:
        """Line by line; None where a step has no words."""
        lines = self._begin()
        for position, moment in enumerate(self._moments):
            lines += self._heard(moment.decided)
            words = self._words(moment, position)
            if words is None:
                return None
            lines += words
        return lines + self._end(self._trace[-1])

    def _walk(self) -> Iterator[_Moment]:
        state = self._space.begin()
        for step in self._trace:
            before = state
            state = next(same.state for same in self._space.follow(state) if same[:2] == step[:2])
            decided = range(self._version(before) + 1, self._version(state) + 1)
            yield _Moment(step.action, self._copies(before), decided)

    def _decided_late(self, moments: list[_Moment]) -> list[_Moment]:
        """The same steps, with planned moves and expired sessions right before the first one that follows from them."""
        ordered: list[_Moment] = []
        waiting: list[_Moment] = []
        for moment in moments:
            action = moment.action
            if action.kind in {"move", "fence"}:
                waiting.append(moment)
                continue
            arrives = action.kind == "deliver" and action.wire is not None and action.wire.kind == "metadata"
            newest = self._image_of(action) if arrives else 0
            ordered += [wait for wait in waiting if wait.decided.start <= newest or moment.decided]
            waiting = [wait for wait in waiting if wait.decided.start > newest and not moment.decided]
            ordered.append(moment)
        return ordered + waiting

    def _version(self, state: State) -> int:
        return self._space.nodes.controller_states[state[0]].version

    def _image_of(self, action: Action) -> int:
        message = self._space.nodes.messages[action.number]
        assert isinstance(message, messages.MetadataUpdate)  # noqa: S101 - what travels on a wire of metadata
        return message.image.version

    def _copies(self, state: State) -> list[BrokerCopy]:
        return [self._space.nodes.copies[digest] for digest in state[1 : 1 + self._scope.constants.brokers]]

    def _begin(self) -> list[str]:
        brokers = range(self._scope.constants.brokers)
        pairs = [f"{source}-{target}" for source in brokers for target in brokers if source < target]
        return [
            *(f"shrink {broker}" for broker in self._outsiders),
            *(f"release 0-{broker}" for broker in self._outsiders),
            *(_MOMENT for _ in self._outsiders[:1]),  # In the search all logs are equal at the beginning.
            f"hold Fetch {' '.join(pairs)}",
            f"hold UpdateMetadata {' '.join(f'controller>{broker}' for broker in brokers)}",
            *(_ASKED_AGAIN for _ in self._outsiders[:1]),
        ]

    def _words(self, moment: _Moment, position: int) -> list[str] | None:
        action, kind, broker = moment.action, moment.action.kind, moment.action.broker
        if action.wire is not None:
            return self._message(action)
        if kind == "write" and not self._scope.constants.keys:
            return [f"send {record_name(action.number)} to {broker}", _MOMENT]
        if kind == "crash":
            return self._crash(action, moment.before[broker])
        if kind == "silent":
            return self._silence(action, position)
        return {
            "move": [*_begins(MoveLeader, broker), _MOMENT],
            "fence": [f"fence {broker}" if moment.before[broker].alive else f"wait until {broker} is fenced"],
            "unfence": [f"heal controller-{broker}", f"wait until {broker} is not fenced"],
            "start": [f"start {broker}", _MOMENT],
            "retry": ["wait 150 ms"],
            "unclean": [],
        }.get(kind)

    def _silence(self, action: Action, position: int) -> list[str] | None:
        """The leader proposes an ISR without a follower. Where the proposal does not arrive, it is held."""
        arrives = any(
            moment.action.wire is not None and moment.action.wire[:2] == ("proposal", action.broker)
            for moment in self._moments[position:]
        )
        leader, (silent, *more) = action.broker, members(action.number)
        if more:
            return None
        others = [broker for broker in range(self._scope.constants.brokers) if broker not in (leader, silent)]
        until = (
            [f"wait until {silent} is not in the isr"]
            if arrives
            else [f"hold AlterPartition {leader}>controller", "wait 3500 ms"]
        )
        return [
            *(f"release {leader}-{other}" for other in others),  # Or they would be silent too.
            *until,
            *(f"hold Fetch {leader}-{other}" for other in others),
        ]

    def _message(self, action: Action) -> list[str] | None:
        message = self._space.nodes.messages[action.number]
        target, source = action.broker, action.peer
        if action.kind == "lose":
            return None
        if action.kind == "skip":
            return []
        if isinstance(message, messages.Fetch):
            answered = [] if self._scope.constants.responses_wait else _passes(f"{target}>{source}", _ANSWER)
            return _passes(f"{source}>{target}", _MOMENT) + answered
        if isinstance(message, messages.FetchResponse):
            return _passes(f"{source}>{target}", _ANSWER)
        if isinstance(message, messages.MetadataUpdate):
            return [f"release controller>{target}", _MOMENT, f"hold UpdateMetadata controller>{target}"]
        return []

    def _crash(self, action: Action, before: BrokerCopy) -> list[str] | None:
        if action.number >= len(before.log):
            return _begins(Kill, action.broker)
        if action.number == 0 and self._scope.constants.crash_loses == "everything":
            return _begins(WipeDisk, action.broker)
        return _begins(PowerLoss, action.broker) if action.number == before.flushed else None

    def _heard(self, decided: range) -> Iterator[str]:
        """Let brokers miss the decisions that come now, if they hear of a later one first."""
        for broker in range(self._scope.constants.brokers) if decided else ():
            deaf = any(self._fates.get((broker, version)) == "skip" for version in decided)
            if deaf != (broker in self._deaf):
                yield f"release controller>{broker}"
                yield f"withhold metadata from {broker}" if deaf else f"hold UpdateMetadata controller>{broker}"
                self._deaf ^= {broker}

    def _end(self, last: Next) -> list[str]:
        """Let the broker that lacks something lead, and see what that comes to."""
        controller_state = self._space.nodes.controller_states[last.state[0]]
        shown = self._space.facts.by_digest[last.state[-1]].shown
        lines = [f"try wait up to 3 s until {record_name(record)} is acknowledged" for record in shown.acknowledged]
        words = ("" if last.broken is None else last.broken[1]).split()
        if words[:1] == ["broker"]:
            lacking = int(words[1])
            if not self._copies(last.state)[lacking].alive:
                lines.append(f"try start {lacking}")
            lines += [f"release controller>{lacking}", f"try wait until {lacking} is not fenced"]
            if lacking in controller_state.state.elr:  # It is elected where no member of the ISR lives.
                lines += [
                    f"try {line}" for broker in sorted(controller_state.state.isr) for line in _begins(Kill, broker)
                ]
                lines += [f"try wait until {broker} is fenced" for broker in sorted(controller_state.state.isr)]
            elif controller_state.state.leader != lacking:
                lines += [f"try {line}" for line in _begins(MoveLeader, lacking)]
        return [*lines, _MOMENT, "heal", "wait 500 ms"]


def _passes(link: str, wait: str) -> list[str]:
    return [f"release {link}", wait, f"hold Fetch {link}"]


def _begins(kind: type[Fault], broker: int) -> list[str]:
    lines = lines_of(kind, [broker])
    return lines.begins if lines else []
