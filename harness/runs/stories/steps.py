"""The vocabulary of scripted stories: steps, the states that a step can wait for, and whom both speak of.

Faults have their words with them (:class:`nemesis.faults.Fault`): each that has ``operands`` is a step. Data only. The
form of each is in :mod:`harness.runs.stories.forms` and, for people, in docs/reference/stories.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Final

import msgspec
from typing_extensions import override

from harness.runs.stories.group_states import GroupState
from nemesis.cluster import Link
from nemesis.faults import FAULTS, DropMessages, Fault, Partition
from nemesis.repairs import Repair
from workloads import IsolationLevel


class BrokerRole(StrEnum):
    """A broker by what it is to the log partition at the moment of the step, as the controller sees it.

    The former leader is the last one before the present leader, or the last one at all while no broker leads; the other
    follower is the first replica that is neither. The coordinator is the leader of another log, that of transactions or
    of groups.
    """

    LEADER = "leader"
    FORMER_LEADER = "the former leader"
    OTHER_FOLLOWER = "the other follower"
    COORDINATOR = "the coordinator"


class TransactionAnswer(StrEnum):
    """The answer of a producer that asked for the end of its transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    REFUSED = "refused"


#: The brokers of every script.
BROKERS: Final = (0, 1, 2)
#: A broker by number or by role.
Broker = int | BrokerRole
#: A record by its name.
Record = str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a script: where it stands, its text, and whether it may fail (``tried``).

    ``tried_in`` are the columns in which it may; None: in every column.
    """

    line: int
    text: str
    tried: bool = False
    tried_in: tuple[str, ...] | None = None

    strikes: ClassVar[type[Fault] | None] = None
    """The kind of fault that every step of this kind begins, if any."""

    @property
    def begins(self) -> type[Fault] | None:
        """The kind of fault that it begins, if any."""
        return self.strikes

    @property
    def frees_links(self) -> bool:
        """True if messages may pass again that did not."""
        return False


# --- what clients do -------------------------------------------------------------------------------------------------


class WriteRecord(Step, frozen=True, kw_only=True):
    """Send one record to a broker and wait a moment for its answer. ``acks`` None: as the column has it.

    Records of one ``producer`` carry its sequence numbers, where producers are idempotent; a record without one has a
    producer of its own. One ``over`` another has the key of that, and takes its place in a compacted log.
    """

    record: Record
    to: Broker
    over: Record | None = None
    acks: int | None = None
    producer: str | None = None


class SendRecord(WriteRecord, frozen=True, kw_only=True):
    """The same without waiting."""


class DeleteKey(WriteRecord, frozen=True, kw_only=True):
    """Send a tombstone, a record of its own, which deletes the key of another in a compacted log."""

    deletes: Record


class Retry(Step, frozen=True, kw_only=True):
    """Send a record again, as its client would: not if it was acknowledged. Waits a moment for the answer."""

    record: Record
    to: Broker


class BumpEpoch(Step, frozen=True, kw_only=True):
    """A producer of single writes goes on with its next epoch, in which its numbers begin at 0 again (KIP-360)."""

    producer: str


class Read(Step, frozen=True, kw_only=True):
    """Let a fresh consumer read the log from its start as far as it can within a moment.

    It must return these ``records`` in this order, and no others; None: whatever it returns.
    """

    records: tuple[Record, ...] | None = None


class ReadAs(Step, frozen=True, kw_only=True):
    """The same with this isolation level, and what it must return: these records in this order, and no others.

    It is no part of the history, whose readers all have the isolation level of the column.
    """

    isolation: IsolationLevel
    records: tuple[Record, ...]


# --- transactions ----------------------------------------------------------------------------------------------------


class InitProducer(Step, frozen=True, kw_only=True):
    """Make a producer with transactions. One ``after`` another has its transactional id, and fences it."""

    producer: str
    after: str | None = None


class BeginTransaction(Step, frozen=True, kw_only=True):
    """Begin a transaction. Brokers hear of it with its first record."""

    transaction: str
    producer: str


class WriteInTransaction(Step, frozen=True, kw_only=True):
    """Send one record in a transaction to the leader, and wait a moment for its answer; ``over``: as in other writes.

    One that is ``elsewhere`` goes to a second log partition. Nothing else is said of that.
    """

    record: Record
    transaction: str
    over: Record | None = None
    elsewhere: bool = False


class SendInTransaction(WriteInTransaction, frozen=True, kw_only=True):
    """The same without waiting."""


class EndTransaction(Step, frozen=True, kw_only=True):
    """Ask for the end of a transaction, and wait a moment for the answer."""

    transaction: str
    commit: bool


class MoveCoordinator(Step, frozen=True, kw_only=True):
    """Hand the coordinator's log over to a broker, as planned: it is the coordinator then."""

    broker: Broker


# --- time ------------------------------------------------------------------------------------------------------------


class Wait(Step, frozen=True, kw_only=True):
    """Let time pass."""

    ms: int


class WaitUntil(Step, frozen=True, kw_only=True):
    """Wait until all ``states`` hold at one moment, at most ``limit_ms`` (None: what the story's patience allows)."""

    states: tuple[State, ...]
    limit_ms: int | None = None


# --- faults ----------------------------------------------------------------------------------------------------------


class Begin(Step, frozen=True, kw_only=True):
    """A fault begins: at each of some brokers, one after the other, or on links.

    Links are by number; :data:`nemesis.cluster.CONTROLLER` and CLIENTS are ends too. ``api`` ("Fetch"; empty: all) is
    of faults of messages, ``record`` of one that damages it.
    """

    fault: type[Fault]
    nodes: tuple[Broker, ...] = ()
    links: tuple[Link, ...] = ()
    api: str = ""
    record: Record = ""

    @property
    @override
    def begins(self) -> type[Fault]:
        return self.fault


class Undo(Step, frozen=True, kw_only=True):
    """Whatever holds these brokers, or links, and is undone by the ``verb``, ends; without any: whatever holds links.

    ``heal`` alone ends everything on links.
    """

    verb: str
    nodes: tuple[Broker, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    @override
    def frees_links(self) -> bool:
        return not self.nodes

    @property
    def repair(self) -> Repair[Any]:
        """The repair of this verb; only the verb goes along to another process."""
        return REPAIRS[self.verb]


class NodeStep(Step, frozen=True, kw_only=True):
    """A step that concerns some brokers, one after the other."""

    nodes: tuple[Broker, ...]


class Flush(NodeStep, frozen=True, kw_only=True):
    """Force to disk what brokers have written."""


class Abandon(NodeStep, frozen=True, kw_only=True):
    """A dead broker never returns, not even when everything else is healed."""


class ReleaseOne(Step, frozen=True, kw_only=True):
    """Deliver the message that was sent first of those that are held on a link, or last; the others stay held."""

    link: Link
    newest: bool

    @property
    @override
    def frees_links(self) -> bool:
        return True


# --- what several of these together do -------------------------------------------------------------------------------


class Withhold(NodeStep, frozen=True, kw_only=True):
    """Keep the controller's metadata from brokers, which stay registered."""

    strikes: ClassVar[type[Fault]] = DropMessages


class Shrink(NodeStep, frozen=True, kw_only=True):
    """Drop the fetches of followers to the leader until they are out of the ISR; they stay dropped."""

    strikes: ClassVar[type[Fault]] = DropMessages


class Isolate(NodeStep, frozen=True, kw_only=True):
    """Cut brokers off from all brokers and the controller, not from clients."""

    strikes: ClassVar[type[Fault]] = Partition


class Fence(NodeStep, frozen=True, kw_only=True):
    """Cut brokers off from the controller until it has given them up; they stay cut off."""

    strikes: ClassVar[type[Fault]] = Partition


# --- states ----------------------------------------------------------------------------------------------------------


class Leads(msgspec.Struct, frozen=True):
    """A broker leads, by the controller's word and by its own."""

    broker: Broker


class SomebodyLeads(msgspec.Struct, frozen=True):
    """The leader that the controller names runs and leads."""


class NobodyLeads(msgspec.Struct, frozen=True):
    """The controller names no leader."""


class LeaderEpochIs(msgspec.Struct, frozen=True):
    """The controller has made this leader epoch."""

    epoch: int


class ElectionsPrefer(msgspec.Struct, frozen=True):
    """The replicas are listed in this order, which is that in which elections prefer them."""

    brokers: tuple[Broker, ...]


class IsFenced(msgspec.Struct, frozen=True):
    """The controller counts a broker as dead, or not (``expected``)."""

    broker: Broker
    expected: bool = True


class InIsr(msgspec.Struct, frozen=True):
    """A broker is in the ISR of the controller, or not (``expected``)."""

    broker: Broker
    expected: bool = True


class IsrIs(msgspec.Struct, frozen=True):
    """The ISR of the controller has exactly these members."""

    brokers: tuple[Broker, ...]


class Has(msgspec.Struct, frozen=True):
    """A broker's log has a record, or lacks it (``expected``)."""

    broker: Broker
    record: Record
    expected: bool = True


class Covers(msgspec.Struct, frozen=True):
    """The high watermark of a broker is above the place of a record in its log, or not (``expected``)."""

    broker: Broker
    record: Record
    expected: bool = True


class IsReady(msgspec.Struct, frozen=True):
    """A producer was told that it is in charge of its transactional id."""

    producer: str


class TransactionEnded(msgspec.Struct, frozen=True):
    """The producer of a transaction was answered: it is committed, or aborted, or neither was done."""

    transaction: str
    how: TransactionAnswer


class Coordinates(msgspec.Struct, frozen=True):
    """A broker is the coordinator, by the controller's word; ``alone``: the ISR of its log has no other member."""

    broker: Broker
    alone: bool = False


class Stable(msgspec.Struct, frozen=True):
    """The last stable offset of a broker is above the place of a record in its log, or not (``expected``)."""

    broker: Broker
    record: Record
    expected: bool = True


class Answered(msgspec.Struct, frozen=True):
    """The client got an answer about a record; ``acknowledged``: a good one."""

    record: Record
    acknowledged: bool


class Refused(msgspec.Struct, frozen=True):
    """Every attempt to send a record was answered, and none with success; ``error`` names what it was, None: any."""

    record: Record
    error: str | None = None


class AllInSync(msgspec.Struct, frozen=True):
    """Every replica runs, is in the ISR, and has the same log end and high watermark at that end."""


#: The states of transactions, and of the coordinator, which groups have, too.
TransactionState = IsReady | TransactionEnded | Coordinates | Stable
#: The states of single records.
RecordState = Has | Covers | Answered | Refused
ReplicationState = (
    Leads | SomebodyLeads | NobodyLeads | LeaderEpochIs | ElectionsPrefer | IsFenced | InIsr | IsrIs | AllInSync
)
State = ReplicationState | RecordState | TransactionState | GroupState
#: The steps of transactions, and of what their readers get: the reference broker has them in virtual time only,
#: as these states.
OF_TRANSACTIONS: Final = (
    InitProducer, BeginTransaction, WriteInTransaction, SendInTransaction, EndTransaction, MoveCoordinator, ReadAs,
)  # fmt: skip


#: The faults that a script can say.
SPOKEN: Final = tuple(fault for fault in FAULTS if fault.operands)
#: The steps that undo these, by verb.
REPAIRS: Final = {fault.undone_by.verb: fault.undone_by for fault in SPOKEN if fault.lasts}
