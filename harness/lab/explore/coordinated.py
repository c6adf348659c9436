"""States of a coordinator and its clients, and what leads from one to the next.

A state has the digests of the coordinator, of other servers, of each client; of what is under way between a client and
whom it asks (a request, or its answer); of what else is under way between servers; of the requests that were given up
and may still arrive; and of the facts. A client waits for one answer at a time.

Requests that were given up were sent on connections that are closed since: they arrive, and their answers go nowhere.
One whose arrival would change nothing is left where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from typing_extensions import override

from harness.broker.core.invariants import Broken
from harness.broker.core.messages import Message
from harness.lab.explore.canonical_form import digest_of
from harness.lab.explore.coordinated_nodes import CoordinatedNodes, NodeResult
from harness.lab.explore.coordinated_scope import CoordinatedConstants
from harness.lab.explore.coordinator_node import COORDINATOR, GONE
from harness.lab.explore.counted_facts import CountedFacts
from harness.lab.explore.events import NodeEvent, SentMessage
from harness.lab.explore.searched import Action, Next, SearchedSpace, State
from nemesis.cluster import CLIENTS


class CoordinatedSpace(SearchedSpace[CoordinatedNodes[Any], CountedFacts[Any]]):
    """States with this number of ``servers`` beside the coordinator, and of ``clients``.

    A subclass says what its clients may do, what the coordinator may do by itself, and which rules there are.
    """

    #: The kind of answer to each kind of request of a client.
    answers: ClassVar[Mapping[type[Message], type[Message]]]
    #: Events at the coordinator that happen as often as they can, and those that the scope limits, by the limit's name.
    unlimited: ClassVar[tuple[str, ...]] = ("fetch", "look")
    limited: ClassVar[Mapping[str, str]] = {"move": "moves"}

    def __init__(self, servers: int, clients: int, constants: CoordinatedConstants) -> None:
        super().__init__()
        self._constants = constants
        self.servers, self.clients = range(servers), range(clients)
        self.first_client = 1 + servers
        self.first_link = self.first_client + clients
        self.first_between = self.first_link + clients
        self.late = self.first_between + servers
        self.width = self.late + 2

    def first_nodes(self) -> list[int]:
        """The digests of all nodes at the beginning."""
        raise NotImplementedError

    def offers(self, state: State, number: int) -> Iterator[tuple[NodeEvent, int]]:
        """The events that a client may begin by itself, and the facts after it, 0 if the scope has no more of it."""
        raise NotImplementedError

    @override
    def begin(self) -> State:
        """The first state: no client has asked for anything."""
        nodes = self.first_nodes()
        state = [*nodes, *(0 for _ in range(self.width - len(nodes) - 1)), self.facts.begin()]
        self._commit(state)
        return tuple(state)

    @override
    def canonical(self, state: State) -> int:
        """The hash of the state as it is: its nodes have their names by what they do."""
        return hash(state)

    @override
    def follow(self, state: State) -> Iterator[Next]:
        for number in self.clients:
            yield from self._on_link(state, number)
            yield from self._by_client(state, number)
        for number in self.servers:
            yield from self._between(state, number)
        yield from self._late_arrive(state)
        yield from self._by_coordinator(state)

    # --- what is under way -------------------------------------------------------------------------------------------

    def target(self, _message: Message) -> int:
        """The server that a request is for."""
        return COORDINATOR

    def _is_answer(self, digest: int) -> bool:
        return isinstance(self.nodes.messages[digest], tuple(self.answers.values()))

    def _index(self, server: int) -> int:
        return 0 if server == COORDINATOR else 1 + server

    def _on_link(self, state: State, number: int) -> Iterator[Next]:
        """The request of a client arrives, or the answer to it."""
        slot, client = self.first_link + number, CLIENTS + number
        digest = state[slot]
        if not digest:
            return
        after = list(state)
        if self._is_answer(digest):
            self._hear(after, number, digest)
            yield self._next(Action("deliver", client, number=digest), after)
            return
        after[slot] = 0
        target = self.target(self.nodes.messages[digest])
        yield from self._act(Action("deliver", target, client, digest), state, after, _message(client, digest))

    def _between(self, state: State, number: int) -> Iterator[Next]:
        """A request of the coordinator arrives at a server, or the answer to it at the coordinator."""
        slot = self.first_between + number
        digest = state[slot]
        if not digest:
            return
        after = list(state)
        after[slot] = 0
        target, source = (COORDINATOR, number) if self._is_answer(digest) else (number, COORDINATOR)
        yield from self._act(Action("deliver", target, source, digest), state, after, _message(source, digest))

    def _late_arrive(self, state: State) -> Iterator[Next]:
        for digest in dict.fromkeys(self.contents[state[self.late]]):
            target, after = self.target(self.nodes.messages[digest]), list(state)
            kept = [*self.contents[state[self.late]]]
            kept.remove(digest)
            after[self.late] = self._bag(kept)
            for step in self._act(Action("late", target, GONE, digest), state, after, _message(GONE, digest)):
                if self._matters(state, step, self._index(target)):
                    yield step

    def _matters(self, state: State, step: Next, index: int) -> bool:
        """A late request has changed something, so it cannot as well stay under way."""
        return step.broken is not None or step.state[index] != state[index]

    def _bag(self, digests: list[int]) -> int:
        """The digest of requests that were given up."""
        if not digests:
            return 0
        content = tuple(sorted(digests))
        digest = digest_of(("late", content))
        self.contents[digest] = content
        return digest

    def _may_be_delayed(self, kind: type[Message]) -> bool:
        return self._constants.delayed in {"any", kind.__name__}

    def _delay(self, after: list[int], slot: int) -> bool:
        """Give up what is under way in a slot, and pay for it; whether the scope has that. An answer is gone."""
        digest = after[slot]
        if digest and not self._is_answer(digest):
            after[self.late] = self._bag([*self.contents[after[self.late]], digest])
        after[slot] = 0
        after[-1] = self.facts.pay(after[-1], "delays")
        return bool(after[-1])

    # --- servers -----------------------------------------------------------------------------------------------------

    def _act(self, action: Action, state: State, after: list[int], event: NodeEvent) -> Iterator[Next]:
        """``event`` happens to a server; what it sends is under way, or arrives at once."""
        (result,) = self.nodes.step(after[self._index(action.broker)], event)
        broken = self._take(after, action.broker, result)
        if after[-1] and (broken is not None or tuple(after) != state):
            yield self._next(action, after, broken)

    def _next(self, action: Action, after: list[int], broken: Broken | None = None) -> Next:
        return Next(action, tuple(after), broken if self.counts(broken) else None)

    def _take(self, after: list[int], server: int, result: NodeResult) -> Broken | None:
        after[self._index(server)] = result.after
        broken = result.broken
        for sent in result.sends:
            broken = self._send(after, server, sent) or broken
        if server == COORDINATOR and not self._constants.decisions_wait:
            broken = self._commit(after) or broken
        return broken

    def _commit(self, after: list[int]) -> Broken | None:
        """Let the follower fetch until it has all, and the coordinator knows that."""
        (result,) = self.nodes.step(after[0], NodeEvent("fetch"))
        if result.after == after[0]:
            return result.broken
        return self._take(after, COORDINATOR, result) or result.broken

    def _send(self, after: list[int], source: int, sent: SentMessage) -> Broken | None:
        """Put a message under way, or let it arrive at once; without facts the scope has no such step."""
        if sent.target == GONE or not after[-1]:
            return None
        if sent.target >= CLIENTS:
            self._answer(after, sent.target - CLIENTS, sent.digest)
        elif sent.target != COORDINATOR:
            slot = self.first_between + sent.target
            if after[slot] and not (self._may_be_delayed(sent.kind) and self._delay(after, slot)):
                after[-1] = 0
            else:
                after[slot] = sent.digest
        elif self._constants.answers_wait:
            after[self.first_between + source] = sent.digest
        else:
            (result,) = self.nodes.step(after[0], _message(source, sent.digest))
            return self._take(after, COORDINATOR, result)
        return None

    def _by_coordinator(self, state: State) -> Iterator[Next]:
        for kind in self.unlimited:
            yield from self._act(Action(kind, COORDINATOR), state, list(state), NodeEvent(kind))
        for event, name in self._limited():
            facts = self.facts.pay(state[-1], name)
            if not facts:
                continue
            (result,) = self.nodes.step(state[0], event)
            if result.after == state[0] and result.broken is None:
                continue
            after = [*state[:-1], facts]
            if event.kind == "move":
                self._forget(after)
            broken = self._take(after, COORDINATOR, result)
            if after[-1]:
                yield self._next(Action(event.kind, COORDINATOR, event.peer), after, broken)

    def _limited(self) -> Iterator[tuple[NodeEvent, str]]:
        """The events at the coordinator that the scope limits, and the name of each limit."""
        return ((NodeEvent(kind), name) for kind, name in self.limited.items())

    def _forget(self, after: list[int]) -> None:
        """Requests of the former coordinator may arrive late; it hears of nothing, and takes no late request."""
        kept = [
            digest
            for digest in self.contents[after[self.late]]
            if self.target(self.nodes.messages[digest]) != COORDINATOR
        ]
        for slot in range(self.first_between, self.late):
            if after[slot] and not self._is_answer(after[slot]):
                kept.append(after[slot])
            after[slot] = 0
        after[self.late] = self._bag(kept)

    # --- clients -----------------------------------------------------------------------------------------------------

    def _answer(self, after: list[int], number: int, digest: int) -> None:
        """Answer a client, if it waits for this answer: it is to the last sending of its request."""
        index, slot = self.first_client + number, self.first_link + number
        asked = self.nodes.messages.get(self.nodes.request_of(after[index]))
        answer = self.nodes.messages[digest]
        if asked is None or after[slot] or type(answer) is not self.answers[type(asked)]:
            return
        if _correlation(asked) != _correlation(answer):
            return
        if self._constants.answers_wait:
            after[slot] = digest
        else:
            self._hear(after, number, digest)

    def _hear(self, after: list[int], number: int, digest: int) -> None:
        """An answer reaches its client, which may ask for the next thing at once."""
        index = self.first_client + number
        before = after[index]
        (result,) = self.nodes.step(before, _message(COORDINATOR, digest))
        after[index] = result.after
        after[self.first_link + number] = self.nodes.request_of(result.after)
        self.heard(after, number, before)

    def heard(self, after: list[int], number: int, before: int) -> None:
        """A client has taken an answer; ``before`` is its digest before that. A subclass notes what was said."""

    def _by_client(self, state: State, number: int) -> Iterator[Next]:
        for event, facts in self.offers(state, number):
            if facts:
                yield self._do(state, number, event, [*state[:-1], facts])
        if self.nodes.clients[state[self.first_client + number]].waits:
            yield from self._repeat(state, number)

    def _repeat(self, state: State, number: int) -> Iterator[Next]:
        """A client asks again, since no answer came: its request may still be under way, or is lost with a move."""
        slot, client = self.first_link + number, state[self.first_client + number]
        is_waited_for = state[slot] or CLIENTS + number in self.nodes.coordinators[state[0]].clients
        asked, after = self.nodes.messages[self.nodes.request_of(client)], list(state)
        if is_waited_for and not (self._may_be_delayed(type(asked)) and self._delay(after, slot)):
            return
        for kind in self.nodes.clients[client].without_answer:
            yield self._do(state, number, NodeEvent(kind), list(after))

    def _do(self, state: State, number: int, event: NodeEvent, after: list[int]) -> Next:
        index = self.first_client + number
        (result,) = self.nodes.step(state[index], event)
        after[index] = result.after
        after[self.first_link + number] = self.nodes.request_of(result.after)
        return self._next(Action(event.kind, CLIENTS + number, event.peer), after)


def _message(source: int, digest: int) -> NodeEvent:
    return NodeEvent("message", source, digest)


def _correlation(message: Message) -> int:
    number: int = getattr(message, "correlation")  # noqa: B009 - all requests and answers have one
    return number
