"""The states of a scope of transactions: producers, their coordinator, and the leaders of log partitions.

Between the coordinator and a leader a marker is under way, or the answer to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, NamedTuple

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.invariants import Broken
from harness.broker.core.messages import Message
from harness.lab.explore.coordinated import CoordinatedSpace
from harness.lab.explore.counted_facts import CountedFacts
from harness.lab.explore.events import NodeEvent
from harness.lab.explore.searched import State
from harness.lab.explore.transactions.nodes import TransactionNodes
from harness.lab.explore.transactions.producers import ProducerNode
from harness.lab.explore.transactions.rules import TRANSACTION_RULES, InCharge, broken_promises, readable_records
from harness.lab.explore.transactions.scope import TransactionScope
from harness.lab.explore.transactions.servers import PartitionCopy

#: The things that a scope limits by their number, in the order in which facts count them.
_LIMITED: Final = ("transactions", "moves", "delays", "expiries")


class TransactionFacts(NamedTuple):
    """Facts of a run up to a state: what of the scope is spent, and which producer was told that it is in charge."""

    spent: tuple[int, ...] = ()
    in_charge: InCharge = InCharge()


class TransactionSpace(CoordinatedSpace):
    """The states of one ``scope`` of transactions."""

    rules: ClassVar[tuple[str, ...]] = TRANSACTION_RULES
    scope: TransactionScope
    nodes: TransactionNodes
    facts: CountedFacts[TransactionFacts]
    answers: ClassVar[Mapping[type[Message], type[Message]]] = {
        messages.InitProducerId: messages.InitProducerIdResponse,
        messages.AddPartitionsToTxn: messages.AddPartitionsToTxnResponse,
        messages.EndTxn: messages.EndTxnResponse,
        messages.Produce: messages.ProduceResponse,
    }
    unlimited: ClassVar[tuple[str, ...]] = ("fetch", "look", "look-late")
    limited: ClassVar[Mapping[str, str]] = {"expire": "expiries", "move": "moves"}

    def __init__(self, scope: TransactionScope) -> None:
        constants = scope.constants
        super().__init__(constants.partitions, constants.producers, constants)
        self.scope = scope
        self.nodes = TransactionNodes(scope)
        self.facts = CountedFacts({name: getattr(constants, name) for name in _LIMITED}, TransactionFacts())

    @override
    def first_nodes(self) -> list[int]:
        return self.nodes.first(len(self.clients))

    @override
    def target(self, message: Message) -> int:
        """A leader is asked to append, the coordinator everything else."""
        return message.partition.partition if isinstance(message, messages.Produce) else super().target(message)

    @override
    def broken(self, state: State) -> Broken | None:
        producers = self.producers_in(state)
        committed = sum(each.end == "committed" for producer in producers for each in producer.transactions)
        self.acknowledged = max(self.acknowledged, committed)
        coordinator, in_charge = self.nodes.coordinators[state[0]], self.facts.by_digest[state[-1]].in_charge
        broken = broken_promises(coordinator, self.parts_in(state), producers, in_charge)
        return next(filter(self.counts, broken), None)

    def producers_in(self, state: State) -> list[ProducerNode]:
        """The producers of a state."""
        return [self.nodes.clients[digest] for digest in state[self.first_client : self.first_link]]

    def parts_in(self, state: State | list[int]) -> list[PartitionCopy]:
        """The log partitions of a state."""
        return [self.nodes.parts[digest] for digest in state[1 : self.first_client]]

    @override
    def offers(self, state: State, number: int) -> Iterator[tuple[NodeEvent, int]]:
        producer: ProducerNode = self.nodes.clients[state[self.first_client + number]]
        for event in producer.offers(len(self.servers), self.scope.constants.writes):
            if event.kind == "init" and number and not self._has_begun(state, number - 1):
                continue
            if event.kind == "write" and not producer.is_open:
                begun = event._replace(number=self.facts.spent(state[-1], "transactions"))
                yield begun, self.facts.pay(state[-1], "transactions")
            else:
                yield event, state[-1]

    def _has_begun(self, state: State, number: int) -> bool:
        """The producer has begun a transaction: before that a successor finds nothing to end."""
        return bool(self.nodes.clients[state[self.first_client + number]].transactions)

    @override
    def heard(self, after: list[int], number: int, before: int) -> None:
        """Note what could be read of earlier producers when one is told that it is in charge."""
        earlier, producer = self.nodes.clients[before], self.nodes.clients[after[self.first_client + number]]
        if number and earlier.purpose == "init" and not producer.waits and not producer.fenced:
            facts = self.facts.by_digest[after[-1]]
            in_charge = InCharge(number, readable_records(self.parts_in(after)))
            after[-1] = self.facts.keep(facts._replace(in_charge=in_charge))
