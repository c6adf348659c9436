"""The states of a whole cluster, and what leads from one to the next.

A state is a tuple of digests: the controller, each broker with its disk, each wire with what is under way on it, and
the *facts* (what has been spent of the scope, what clients have seen). A wire is one connection in one direction, in
order; messages on different wires overtake each other as they like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from operator import itemgetter
from typing import ClassVar

from typing_extensions import override

from harness.broker.core.invariants import Broken
from harness.broker.core.types import CONTROLLER, NONE
from harness.lab.explore.brokers import BrokerCopy, members
from harness.lab.explore.canonical_form import Renaming, digest_of, renamed
from harness.lab.explore.events import CLEAN_EVENTS, NodeEvent, SentMessage, StepResult
from harness.lab.explore.nodes import NodeStates
from harness.lab.explore.path_facts import FactsByDigest
from harness.lab.explore.rules import PERMITTED, RULES, as_permitted, broken_rules, in_sequence, may_be_last
from harness.lab.explore.scope import Scope
from harness.lab.explore.searched import Action, Next, SearchedSpace, State
from harness.lab.explore.wires import WireName, every_wire, wire_kind
from nemesis.faults import PowerLoss, WipeDisk


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
        self._slots = {wire: slot for slot, wire in enumerate(self.wires, 1 + constants.brokers)}
        self.width = 1 + constants.brokers + len(self.wires) + 1
        self.facts = FactsByDigest(constants)
        self._wires: dict[tuple[int, ...], int] = {(): 0}
        orders = [*permutations(self._brokers)][1:] if merged and constants.elected == "any" else []
        #: Functions that give a state under other names of its brokers, one for each naming; the first changes nothing.
        self.namings: tuple[Callable[[State], State], ...] = (tuple, *(self._naming(names) for names in orders))
        self._namings_of: dict[int, tuple[Callable[[State], State], ...]] = {}

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
        order = [0, *brokers, *wires, self.width - 1]
        slots = itemgetter(*order)

        def find(digest: int) -> int:
            content = self.contents.get(digest)
            if content is not None:
                return digest_of(("wire", tuple(map(renaming.__getitem__, content))))
            tree = self.nodes.tree(digest)
            return digest if tree is None else digest_of(renamed(tree, names))

        renaming = Renaming(find)
        renaming[0] = 0
        return lambda state: tuple(map(renaming.__getitem__, slots(state)))

    def _wire_of(self, content: tuple[int, ...]) -> int:
        """The digest of a wire on which these messages are under way."""
        digest = self._wires.get(content)
        if digest is None:
            digest = self._wires[content] = digest_of(("wire", content))
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
        for number, (_, sends) in enumerate(brokers):
            self._send(state, number, sends)
        for follower in range(1, self.scope.constants.in_sync):
            for wire in (WireName("request", follower, 0), WireName("response", 0, follower)):
                waiting = [step for step in self.follow(tuple(state)) if step.action[-1] == wire]
                state = list(waiting[0].state) if waiting else state
        return tuple(state)

    @override
    def broken(self, state: State) -> Broken | None:
        """The rule that a state breaks, None if it breaks none."""
        copies = [self.nodes.copies[state[1 + number]] for number in self._brokers]
        facts = self.facts.by_digest[state[-1]]
        self.acknowledged = max(self.acknowledged, len(facts.shown.acknowledged))
        decided = self.nodes.controller_states[state[0]].state
        broken = broken_rules(decided, copies, facts.shown, self.scope.constants.keys)
        if self.nodes.settings.enable_idempotence:
            broken += in_sequence(facts.shown.read)
        if facts.permitted:
            broken = [as_permitted(breach) for breach in broken]
            self.permitted = self.permitted or any(breach[0] == PERMITTED for breach in broken)
        return next(filter(self.counts, broken), None)

    @override
    def follow(self, state: State) -> Iterator[Next]:
        """Every step that is possible in ``state``, always in the same order."""
        for wire, slot in self._slots.items():
            if state[slot]:
                yield from self._deliver(state, slot, wire)
        for number in self._brokers:
            yield from self._at_broker(state, number)
        yield from self._at_controller(state)

    # --- messages ----------------------------------------------------------------------------------------------------

    def _deliver(self, state: State, slot: int, wire: WireName) -> Iterator[Next]:
        content = self.contents[state[slot]]
        rest = self._wire_of(content[1:])
        event = NodeEvent("message", wire.source, content[0])
        action = Action("deliver", wire.target, wire.source, content[0], wire)
        arrived = (*state[:slot], rest, *state[slot + 1 :])
        yield from self._act(action, arrived, wire.target, event, behind=bool(rest))
        if wire.kind == "metadata":
            if len(content) > 1:
                yield from self._paid_for("skips", arrived, action._replace(kind="skip"))
        else:
            yield from self._paid_for("losses", arrived, action._replace(kind="lose"))

    def _paid_for(self, name: str, state: State, action: Action) -> Iterator[Next]:
        facts = self.facts.pay(state[-1], name)
        if facts:
            after = (*state[:-1], facts)
            yield Next(action, after, None)

    def _act(
        self, action: Action, state: State, target: int, event: NodeEvent, *, behind: bool = False
    ) -> Iterator[Next]:
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
            after = list(state)
            after[index] = outcome.after
            broken = self._take(after, target, outcome)
            if after[-1]:
                yield Next(action, tuple(after), broken)

    def _refused(self, action: Action, state: State, leader: int, refusal: StepResult) -> Iterator[Next]:
        """The refusal reaches its follower, which asks again: nothing, if its copy and its question are as before."""
        ((follower, _, digest),) = refusal.sends
        follower_slot, asked = 1 + follower, self._slots[WireName("request", follower, leader)]
        before = self.nodes.copies[state[follower_slot]]
        if not before.alive or state[self._slots[WireName("response", leader, follower)]] or action.wire is None:
            return
        after = list(state)
        broken = self._at_once(after, leader, follower, digest)
        retry = NodeEvent("retry", leader)
        if after[-1] and retry in self.nodes.offers(after[follower_slot]):
            (again,) = self.nodes.step(after[follower_slot], retry)
            after[follower_slot] = again.after
            broken = self._take(after, follower, again) or broken
        questions = self.contents[after[asked]]
        same = not questions or [*map(self.nodes.question, questions)] == [self.nodes.question(action.number)]
        if broken is not None or (after[-1] and not (same and self.nodes.copies[after[follower_slot]] == before)):
            yield Next(action, tuple(after), broken)

    def _take(self, state: list[int], target: int, outcome: StepResult) -> Broken | None:
        """Let the result of a node's step reach all others."""
        state[-1], broken = self.facts.show(state[-1], outcome)
        if outcome.given_up and not self._stale:
            self._forget(state, target, outcome.given_up)
        sent = self._send(state, target, outcome.sends)
        return next((breach for breach in (outcome.broken, broken, sent) if self.counts(breach)), None)

    def _send(self, state: list[int], source: int, sends: tuple[SentMessage, ...]) -> Broken | None:
        """Put messages on their wires, unless their receiver is dead."""
        broken = None
        for target, kind, digest in sends:
            if target != CONTROLLER and not self.nodes.copies[state[1 + target]].alive:
                continue
            name = wire_kind(kind)
            slot = self._slots[WireName(name, source, target)]
            no_news = name == "metadata" and self._is_no_news(state[slot], self.nodes.copies[state[1 + target]], digest)
            if (no_news and not state[slot]) or (name == "response" and not self.scope.constants.responses_wait):
                broken = self._at_once(state, source, target, digest) or broken
                continue
            content = self.contents[state[slot]]
            state[slot] = self._wire_of((*(content[:-1] if no_news else content), digest))
            if name == "proposal" and state[-1]:
                state[-1] = self.facts.pay(state[-1], "proposals")
        return broken

    def _is_no_news(self, wire: int, copy: BrokerCopy, digest: int) -> bool:
        """A decision that names the leader and the leader epoch of the one before, and another leader than this broker.

        It changes nothing at the broker but the version that it knows, so it arrives together with the one before.
        """
        content = self.contents[wire]
        before = self.nodes.led(content[-1]) if content else (copy.leader, copy.leader_epoch)
        return before == self.nodes.led(digest) and before[0] != copy.number

    def _forget(self, state: list[int], follower: int, leaders: Iterable[int]) -> None:
        """Take away the questions that a follower has asked these leaders and does not wait for any more."""
        for leader in leaders:
            state[self._slots[WireName("request", follower, leader)]] = 0
            state[self._slots[WireName("response", leader, follower)]] = 0

    def _at_once(self, state: list[int], source: int, target: int, digest: int) -> Broken | None:
        (outcome,) = self.nodes.step(state[1 + target], NodeEvent("message", source, digest))
        state[1 + target] = outcome.after
        return self._take(state, target, outcome)

    # --- what happens by itself --------------------------------------------------------------------------------------

    def _at_broker(self, state: State, number: int) -> Iterator[Next]:
        copy = self.nodes.copies[state[1 + number]]
        if not copy.alive:
            yield from self._restart(state, number, copy.incarnation)
            return
        for offered in self.nodes.offers(state[1 + number]):
            for event, facts in self._afford(state[-1], offered, copy):
                if facts:
                    action = Action(event.kind, number, event.peer, event.number)
                    yield from self._act(action, (*state[:-1], facts), number, event)
        yield from self._crash(state, number)

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

    def _crash(self, state: State, number: int) -> Iterator[Next]:
        facts = self.facts.pay(state[-1], "crashes")
        if not facts:
            return
        copy, loses = self.nodes.copies[state[1 + number]], self.scope.constants.crash_loses
        end = len(copy.log)
        least = {"nothing": end, "unflushed": min(copy.flushed, end), "everything": 0}[loses]
        away = len({*self._brokers} - {number, *self.nodes.controller_states[state[0]].state.isr})
        silent = list(state)
        silent[-1] = facts
        for wire, slot in self._slots.items():
            if wire.target == number or (wire.source == number and wire.kind == "request" and not self._stale):
                silent[slot] = 0
        for kept in range(end, least - 1, -1):
            action = Action("crash", number, number=kept)
            yield from self._act(action, tuple(silent), number, NodeEvent("crash", away, kept))

    def _restart(self, state: State, number: int, incarnation: int) -> Iterator[Next]:
        """A dead broker is started and registers, once the controller accepts it."""
        facts = self._destroyed(state, number)
        for outcome in self.nodes.step(state[0], NodeEvent("register", number, incarnation + 1)):
            if outcome.registered == NONE:
                continue
            after = list(state)
            after[0], after[-1] = outcome.after, facts
            (started,) = self.nodes.step(state[1 + number], NodeEvent("start", NONE, outcome.registered))
            after[1 + number] = started.after
            self._send(after, CONTROLLER, outcome.sends)
            broken = outcome.broken or started.broken
            yield Next(Action("start", number), tuple(after), broken if self.counts(broken) else None)

    def _destroyed(self, state: State, number: int) -> int:
        """The facts once a dead broker is back with what its disk has left."""
        copies = [self.nodes.copies[state[1 + broker]] for broker in self._brokers]
        facts, controller_state = self.facts.by_digest[state[-1]], self.nodes.controller_states[state[0]]
        if facts.permitted or copies[number].away == NONE:
            return state[-1]
        disturbed = any(self.facts.spent(state[-1], name) for name in ("fences", "shrinks"))
        fault = PowerLoss if self.scope.constants.crash_loses == "unflushed" else WipeDisk
        permitted = may_be_last(self.nodes.settings, fault.kind, number, controller_state, copies, disturbed=disturbed)
        return self.facts.keep(facts._replace(permitted=permitted))

    def _at_controller(self, state: State) -> Iterator[Next]:
        controller_state = self.nodes.controller_states[state[0]]
        for event in self.nodes.offers(state[0]):
            paid = state
            if event.kind == "unfence":
                copy = self.nodes.copies[state[1 + event.peer]]
                if (copy.registered, copy.version) != (controller_state.epochs[event.peer], controller_state.version):
                    continue
            elif event.kind == "move" or (event.kind == "fence" and self.nodes.copies[state[1 + event.peer]].alive):
                facts = self.facts.pay(state[-1], f"{event.kind}s")
                if not facts:
                    continue
                paid = (*state[:-1], facts)
            yield from self._act(Action(event.kind, event.peer), paid, CONTROLLER, event)
