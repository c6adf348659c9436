"""The states of a whole cluster, and what leads from one to the next.

A state is a tuple of digests: the controller, each broker with its disk, each wire with what is under way on it, and
the *facts* (what has been spent of the scope, what clients have seen). A wire is one connection in one direction, in
order; messages on different wires overtake each other as they like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from operator import itemgetter
from typing import Any, ClassVar

from typing_extensions import override

from harness.explore.brokers import BrokerCopy, members
from harness.explore.canonical_form import Renaming, digest_of, renamed
from harness.explore.drafts import Draft, DraftStep, Remembered, RememberedSteps, View, remembered, with_changes
from harness.explore.events import CLEAN_EVENTS, NodeEvent, SentMessage, StepResult
from harness.explore.nodes import NodeStates
from harness.explore.path_facts import FactsByDigest
from harness.explore.rules import PERMITTED, RULES, as_judged, as_permitted, broken_rules, in_sequence, may_be_last
from harness.explore.scope import Scope
from harness.explore.searched import Action, Next, SearchedSpace, State
from harness.explore.wires import WireName, every_wire, wire_kind
from harness.reference.core.invariants import Broken
from harness.reference.core.types import CONTROLLER, NONE
from nemesis.faults import PowerLoss, WipeDisk

#: The rule that a state breaks, how many records were acknowledged, and whether a loss is permitted in it.
Verdict = tuple[Broken | None, int, bool]


class Space(SearchedSpace[NodeStates, FactsByDigest]):
    """The states of one ``scope``. Everything that is known of digests is kept here, and found out at most once."""

    rules: ClassVar[tuple[str, ...]] = RULES
    scope: Scope

    def __init__(self, scope: Scope, *, merged: bool = True) -> None:
        super().__init__()
        self.scope = scope
        self.nodes = NodeStates(scope)
        constants = scope.constants
        self._brokers = range(constants.brokers)
        self._stale = constants.stale_requests
        self.wires = every_wire(constants.brokers)
        self._first_wire = 1 + constants.brokers
        self._slots = {wire: self._first_wire + number for number, wire in enumerate(self.wires)}
        self.width = self._first_wire + len(self.wires) + 1
        self.facts = FactsByDigest(constants)
        self._pushed: dict[tuple[int, int, bool], int] = {}
        orders = [*permutations(self._brokers)][1:] if merged and constants.elected == "any" else []
        #: Functions that give a state under other names of its brokers, one for each naming; the first changes nothing.
        self.namings: tuple[Callable[[State], State], ...] = (tuple, *(self._naming(names) for names in orders))
        self._namings_of: dict[int, tuple[Callable[[State], State], ...]] = {}
        copies = self.nodes.copies
        self._alive = View(lambda digest: copies[digest].alive)
        self._led = View(lambda digest: (copies[digest].leader, copies[digest].leader_epoch))
        self._registered = View(lambda digest: (copies[digest].registered, copies[digest].version))
        self._judged = View(lambda digest: as_judged(copies[digest]))
        self._decided = View(lambda digest: self.nodes.controller_states[digest].state)
        self._verdict = Remembered(self._judge)
        self._arrivals = [remembered(self._deliver, slot=slot, wire=wire) for wire, slot in self._slots.items()]
        self._others = [*self._what_happens_by_itself()]

    def _what_happens_by_itself(self) -> Iterator[RememberedSteps]:
        for number in self._brokers:
            yield remembered(self._at_broker, number=number)
            yield remembered(self._crash, number=number)
        for number in self._brokers:
            yield remembered(self._sessions, broker=number)
        yield remembered(self._elections)

    # --- digests -----------------------------------------------------------------------------------------------------

    @override
    def canonical(self, state: State) -> int:
        """The hash by which a state is remembered: the same under every naming of its brokers.

        It is the least over the namings that give the controller the least digest: mostly one, since a controller tells
        its brokers apart.
        """
        namings = self._namings_of.get(state[0])
        if namings is None:
            named = [(name(state)[0], name) for name in self.namings]
            least = min(digest for digest, _ in named)
            namings = self._namings_of[state[0]] = tuple(name for digest, name in named if digest == least)
        return min([hash(name(state)) for name in namings])

    def _naming(self, names: tuple[int, ...]) -> Callable[[State], State]:
        """Return a function that gives a state as it is when broker n is called ``names[n]``."""
        called = {new: old for old, new in enumerate(names)} | {CONTROLLER: CONTROLLER}
        brokers = [1 + called[number] for number in self._brokers]
        wires = [self._slots[WireName(wire.kind, called[wire.source], called[wire.target])] for wire in self.wires]
        order = [0, *brokers, *wires, self._first_wire + len(wires)]
        places = itemgetter(*order)
        renaming = Renaming(self._finder(names))
        renaming[0] = 0
        find = renaming.__getitem__
        return lambda state: tuple(map(find, places(state)))

    def _finder(self, names: tuple[int, ...]) -> Any:
        def find(digest: int) -> int:
            content = self.contents.get(digest)
            if content is not None:
                return self._wire_of(tuple(find(digest) for digest in content), keep=False)
            tree = self.nodes.tree(digest)
            return digest if tree is None else digest_of(renamed(tree, names))

        return find

    def _wire_of(self, content: tuple[int, ...], *, keep: bool = True) -> int:
        if not content:
            return 0
        digest = digest_of(("wire", content))
        if keep:
            self.contents[digest] = content
        return digest

    # --- states ------------------------------------------------------------------------------------------------------

    @override
    def begin(self) -> State:
        """The first state: broker 0 leads, everybody is registered, and it knows that its in-sync followers fetch."""
        controller, brokers = self.nodes.begin()
        state = [
            controller,
            *(digest for digest, _ in brokers),
            *(0 for _ in self.wires),
            self.facts.begin(),
        ]
        first = Draft(tuple(state), {}, {})
        for number, (_, sends) in enumerate(brokers):
            self._send(first, number, sends)
        state = list(first.state())
        for follower in range(1, self.scope.constants.in_sync):
            for wire in (WireName("request", follower, 0), WireName("response", 0, follower)):
                waiting = [step for step in self.follow(tuple(state)) if step.action[-1] == wire]
                state = list(waiting[0].state) if waiting else state
        return tuple(state)

    @override
    def broken(self, state: State) -> Broken | None:
        """The rule that a state breaks, None if it breaks none."""
        broken, acknowledged, permitted = self._verdict(state)
        self.acknowledged = max(self.acknowledged, acknowledged)
        self.permitted = self.permitted or permitted
        return broken

    def _judge(self, state: Draft) -> Verdict:
        copies = [state.part(1 + number, self._judged) for number in self._brokers]
        facts = self.facts.by_digest[state[-1]]
        broken = broken_rules(state.part(0, self._decided), copies, facts.shown, self.scope.constants.keys)
        if self.nodes.settings.enable_idempotence:
            broken += in_sequence(facts.shown.read)
        permitted = False
        if facts.permitted:
            broken = [as_permitted(breach) for breach in broken]
            permitted = any(breach[0] == PERMITTED for breach in broken)
        return next(filter(self.counts, broken), None), len(facts.shown.acknowledged), permitted

    @override
    def follow(self, state: State) -> Iterator[Next]:
        """Every step that is possible in ``state``, always in the same order."""
        under_way = [
            arrive for arrive, digest in zip(self._arrivals, state[self._first_wire : -1], strict=True) if digest
        ]
        for source in (*under_way, *self._others):
            for action, changes, broken in source(state):
                yield Next(action, with_changes(state, changes), broken)

    # --- messages ----------------------------------------------------------------------------------------------------

    def _deliver(self, state: Draft, slot: int, wire: WireName) -> Iterator[DraftStep]:
        content = self.contents[state[slot]]
        rest = self._wire_of(content[1:])
        event = NodeEvent("message", wire.source, content[0])
        action = Action("deliver", wire.target, wire.source, content[0], wire)
        arrived = state.with_change(slot, rest)
        yield from self._act(action, arrived, wire.target, event, behind=bool(rest))
        if wire.kind == "metadata":
            if len(content) > 1:
                yield from self._paid_for("skips", arrived, action._replace(kind="skip"))
        else:
            yield from self._paid_for("losses", arrived, action._replace(kind="lose"))

    def _paid_for(self, name: str, state: Draft, action: Action) -> Iterator[DraftStep]:
        facts = self._pay(state, name)
        if facts:
            yield DraftStep(action, state.with_change(-1, facts), None)

    def _pay(self, state: Draft, name: str) -> int:
        return self.facts.pay(state[-1], name) if self.facts.limits[name] else 0

    def _act(
        self, action: Action, state: Draft, target: int, event: NodeEvent, *, behind: bool = False
    ) -> Iterator[DraftStep]:
        """``event`` happens to a node; what it sends is under way.

        A refused request with nothing ``behind`` is asked again until it is not refused, so it is left where it is,
        unless the refusal did something to its follower.
        """
        index = 0 if target == CONTROLLER else 1 + target
        for outcome in self.nodes.step(state[index], event):
            if outcome.idle:
                continue
            if outcome.refused and not behind:
                yield from self._refused(action, state, target, outcome)
                continue
            after = state.with_change(index, outcome.after)
            broken = self._take(after, target, outcome)
            if self._affordable(after):
                yield DraftStep(action, after, broken)

    def _affordable(self, state: Draft) -> bool:
        """The scope has what the step needs."""
        return state.changes.get(-1) != 0

    def _refused(self, action: Action, state: Draft, leader: int, refusal: StepResult) -> Iterator[DraftStep]:
        """The refusal reaches its follower, which asks again: nothing, if its copy and its question are as before."""
        ((follower, _, digest),) = refusal.sends
        follower_slot, asked = 1 + follower, self._slots[WireName("request", follower, leader)]
        before = self.nodes.copies[state[follower_slot]]
        if not before.alive or state[self._slots[WireName("response", leader, follower)]] or action.wire is None:
            return
        after = state.copy()
        broken = self._at_once(after, leader, follower, digest)
        retry = NodeEvent("retry", leader)
        if self._affordable(after) and retry in self.nodes.offers(after[follower_slot]):
            (again,) = self.nodes.step(after[follower_slot], retry)
            after[follower_slot] = again.after
            broken = self._take(after, follower, again) or broken
        questions = self.contents[after[asked]]
        same = not questions or [*map(self.nodes.question, questions)] == [self.nodes.question(action.number)]
        if broken is not None or (
            self._affordable(after) and not (same and self.nodes.copies[after[follower_slot]] == before)
        ):
            yield DraftStep(action, after, broken)

    def _take(self, state: Draft, target: int, outcome: StepResult) -> Broken | None:
        """Let the result of a node's step reach all others."""
        broken = None
        if outcome.acknowledged or outcome.exposed is not None:
            state[-1], broken = self.facts.show(state[-1], outcome)
        if outcome.given_up and not self._stale:
            self._forget(state, target, outcome.given_up)
        sent = self._send(state, target, outcome.sends)
        return next((breach for breach in (outcome.broken, broken, sent) if self.counts(breach)), None)

    def _send(self, state: Draft, source: int, sends: tuple[SentMessage, ...]) -> Broken | None:
        """Put messages on their wires, unless their receiver is dead."""
        broken = None
        for target, kind, digest in sends:
            if target != CONTROLLER and not state.part(1 + target, self._alive):
                continue
            name = wire_kind(kind)
            slot = self._slots[WireName(name, source, target)]
            no_news = name == "metadata" and self._is_no_news(state, slot, target, digest)
            if (no_news and not state[slot]) or (name == "response" and not self.scope.constants.responses_wait):
                broken = self._at_once(state, source, target, digest) or broken
                continue
            key = (state[slot], digest, no_news)
            pushed = self._pushed.get(key)
            if pushed is None:
                content = self.contents[state[slot]]
                pushed = self._pushed[key] = self._wire_of((*(content[:-1] if no_news else content), digest))
            state[slot] = pushed
            if name == "proposal" and self._affordable(state):
                state[-1] = self.facts.pay(state[-1], "proposals")
        return broken

    def _is_no_news(self, state: Draft, slot: int, target: int, digest: int) -> bool:
        """A decision that names the leader and the leader epoch of the one before, and another leader than this broker.

        It changes nothing at the broker but the version that it knows, so it arrives together with the one before.
        """
        content = self.contents[state[slot]]
        before = self.nodes.led(content[-1]) if content else state.part(1 + target, self._led)
        return before == self.nodes.led(digest) and before[0] != target

    def _forget(self, state: Draft, follower: int, leaders: Iterable[int]) -> None:
        """Take away the questions that a follower has asked these leaders and does not wait for any more."""
        for leader in leaders:
            state[self._slots[WireName("request", follower, leader)]] = 0
            state[self._slots[WireName("response", leader, follower)]] = 0

    def _at_once(self, state: Draft, source: int, target: int, digest: int) -> Broken | None:
        (outcome,) = self.nodes.step(state[1 + target], NodeEvent("message", source, digest))
        state[1 + target] = outcome.after
        return self._take(state, target, outcome)

    # --- what happens by itself --------------------------------------------------------------------------------------

    def _at_broker(self, state: Draft, number: int) -> Iterator[DraftStep]:
        copy = self.nodes.copies[state[1 + number]]
        if not copy.alive:
            yield from self._restart(state, number, copy.incarnation)
            return
        for offered in self.nodes.offers(state[1 + number]):
            for event, facts in self._afford(state[-1], offered, copy):
                if facts:
                    action = Action(event.kind, number, event.peer, event.number)
                    yield from self._act(action, state.with_change(-1, facts), number, event)

    def _afford(self, facts: int, event: NodeEvent, copy: BrokerCopy) -> Iterator[tuple[NodeEvent, int]]:
        """A broker's own event as it happens, and the facts after it, 0 if the scope has no more of it."""
        if event.kind == "write":
            written, acknowledged = self.facts.by_digest[facts].written, self.facts.by_digest[facts].shown.acknowledged
            yield NodeEvent("write", NONE, written), self.facts.pay(facts, "records")
            for record in range(written) if self.scope.constants.retries else ():
                if record not in acknowledged:
                    yield NodeEvent("write-again", NONE, record), self.facts.pay(facts, "retries")
            return
        if event.kind == "silent":
            for _ in copy.maximal_isr.intersection(members(event.number)):
                facts = facts and self.facts.pay(facts, "shrinks")
        elif event.kind in {"again", "repeat"}:
            facts = self.facts.pay(facts, "timeouts")
        elif event.kind in CLEAN_EVENTS:
            facts = self.facts.pay(facts, "cleanings")
            if event.kind == "clean-late":
                facts = facts and self.facts.pay(facts, "late_cleanings")
        yield event, facts

    def _crash(self, state: Draft, number: int) -> Iterator[DraftStep]:
        facts = self._pay(state, "crashes")
        if not facts or not state.part(1 + number, self._alive):
            return
        copy, loses = self.nodes.copies[state[1 + number]], self.scope.constants.crash_loses
        end = len(copy.log)
        least = {"nothing": end, "unflushed": min(copy.flushed, end), "everything": 0}[loses]
        away = len({*self._brokers} - {number, *self.nodes.controller_states[state[0]].state.isr})
        silent = state.with_change(-1, facts)
        for wire, slot in self._slots.items():
            if wire.target == number or (wire.source == number and wire.kind == "request" and not self._stale):
                silent[slot] = 0
        for kept in range(end, least - 1, -1):
            action = Action("crash", number, number=kept)
            yield from self._act(action, silent, number, NodeEvent("crash", away, kept))

    def _restart(self, state: Draft, number: int, incarnation: int) -> Iterator[DraftStep]:
        """A dead broker is started and registers, once the controller accepts it."""
        facts = self._destroyed(state, number)
        for outcome in self.nodes.step(state[0], NodeEvent("register", number, incarnation + 1)):
            if outcome.registered == NONE:
                continue
            after = state.with_change(0, outcome.after)
            after[-1] = facts
            (started,) = self.nodes.step(state[1 + number], NodeEvent("start", NONE, outcome.registered))
            after[1 + number] = started.after
            self._send(after, CONTROLLER, outcome.sends)
            broken = outcome.broken or started.broken
            yield DraftStep(Action("start", number), after, broken if self.counts(broken) else None)

    def _destroyed(self, state: Draft, number: int) -> int:
        """The facts once a dead broker is back with what its disk has left."""
        facts = self.facts.by_digest[state[-1]]
        if facts.permitted or self.nodes.copies[state[1 + number]].away == NONE:
            return state[-1]
        copies = [self.nodes.copies[state[1 + broker]] for broker in self._brokers]
        controller_state = self.nodes.controller_states[state[0]]
        disturbed = any(self.facts.spent(state[-1], name) for name in ("fences", "shrinks"))
        fault = PowerLoss if self.scope.constants.crash_loses == "unflushed" else WipeDisk
        permitted = may_be_last(self.nodes.settings, fault.kind, number, controller_state, copies, disturbed=disturbed)
        return self.facts.keep(facts._replace(permitted=permitted))

    def _sessions(self, state: Draft, broker: int) -> Iterator[DraftStep]:
        """The session of a broker ends, or it is unfenced."""
        controller_state, paid = self.nodes.controller_states[state[0]], state
        kind = "unfence" if broker in controller_state.fenced else "fence"
        if kind == "unfence":
            if state.part(1 + broker, self._registered) != (controller_state.epochs[broker], controller_state.version):
                return
        elif state.part(1 + broker, self._alive):
            facts = self._pay(state, "fences")
            if not facts:
                return
            paid = state.with_change(-1, facts)
        yield from self._act(Action(kind, broker), paid, CONTROLLER, NodeEvent(kind, broker))

    def _elections(self, state: Draft) -> Iterator[DraftStep]:
        """The controller looks for a leader again, or an operator moves the leader."""
        for event in self.nodes.offers(state[0]):
            paid = state
            if event.kind == "move":
                facts = self._pay(state, "moves")
                if not facts:
                    return
                paid = state.with_change(-1, facts)
            if event.kind in {"move", "unclean"}:
                yield from self._act(Action(event.kind, event.peer), paid, CONTROLLER, event)
