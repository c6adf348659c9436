"""The vocabulary of scripted stories: steps, the states that a step can wait for, and whom both speak of.

Data only. How it is written down: :mod:`harness.stories.language` and docs/stories.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from nemesis.cluster import Link


class Role(StrEnum):
    """A broker by what it is to the log partition at the moment of the step, as the controller sees it.

    The former leader is the last one before the present leader, or the last one there was while nobody leads; the other
    follower is the first replica that is neither.
    """

    LEADER = "leader"
    FORMER_LEADER = "the former leader"
    OTHER_FOLLOWER = "the other follower"


#: The brokers of every script.
BROKERS: Final = (0, 1, 2)
#: A broker by number or by role.
Broker = int | Role
#: A record by its name.
Record = str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a script: where it stands, its text, and whether it may fail (``tried``)."""

    line: int
    text: str
    tried: bool = False


# --- what clients do -------------------------------------------------------------------------------------------------


class Write(Step, frozen=True, kw_only=True):
    """Send one record to a broker and wait a moment for its answer. ``acks`` None: as the column has it.

    Records of one ``producer`` carry its sequence numbers, where producers are idempotent; a record without one has a
    producer of its own.
    """

    record: Record
    to: Broker
    acks: int | None = None
    producer: str | None = None


class Send(Write, frozen=True, kw_only=True):
    """As Write, without waiting."""


class Retry(Step, frozen=True, kw_only=True):
    """Send a record again, as its client would: not if it was acknowledged. Waits a moment for the answer."""

    record: Record
    to: Broker


class Read(Step, frozen=True, kw_only=True):
    """Let a fresh consumer read the log from its start as far as it can within a moment."""


# --- time ------------------------------------------------------------------------------------------------------------


class Wait(Step, frozen=True, kw_only=True):
    """Let time pass."""

    ms: int


class WaitUntil(Step, frozen=True, kw_only=True):
    """Wait until all ``states`` hold at one moment, at most ``limit_ms`` (None: what the story's patience allows)."""

    states: tuple[State, ...]
    limit_ms: int | None = None


# --- what is done to processes and disks -----------------------------------------------------------------------------


class NodeStep(Step, frozen=True, kw_only=True):
    """What is done to some brokers, one after the other. ``CONTROLLER`` is a node too where a process is meant."""

    nodes: tuple[Broker, ...]


class Deed(StrEnum):
    """What is done to single brokers, by its verb."""

    KILL = "kill"  # end the process at once (SIGKILL)
    START = "start"  # start a dead process again on its disk
    STOP = "stop"  # ask the process to end in order (SIGTERM)
    PAUSE = "pause"  # freeze the process (SIGSTOP)
    RESUME = "resume"  # let a frozen process run on (SIGCONT)
    POWER = "power"  # the process ends at once, and its disk loses what was not forced to it
    WIPE = "wipe"  # empty the disk of a dead broker
    FLUSH = "flush"  # force to disk what a broker has written
    LIE = "lie"  # let its disk answer flushes that it does not do
    FAIL = "fail"  # its disk with the log partition fails, and it goes on with another one (JBOD)
    REPLACE = "replace"  # put an empty disk in the place of the failed one of a dead broker


class Do(NodeStep, frozen=True, kw_only=True):
    """Do one deed to each of some brokers."""

    deed: Deed


class Abandon(NodeStep, frozen=True, kw_only=True):
    """A dead broker never returns, not even when everything else is healed."""


class Corrupt(Step, frozen=True, kw_only=True):
    """Change one byte of a record on the disk of a dead broker."""

    record: Record
    on: Broker


# --- what is done to links and messages ------------------------------------------------------------------------------


class LinkStep(Step, frozen=True, kw_only=True):
    """What is done to links, by number; :data:`nemesis.cluster.CONTROLLER` and CLIENTS are ends too."""

    links: tuple[Link, ...]


class Cut(LinkStep, frozen=True, kw_only=True):
    """Deliver nothing over these links."""


class Heal(LinkStep, frozen=True, kw_only=True):
    """Deliver again over these links; without links: over all, and messages are neither held nor dropped any more."""


class Drop(LinkStep, frozen=True, kw_only=True):
    """Throw away messages of an ``api`` ("Fetch"; empty: all) that are sent over these links from now on."""

    api: str = ""


class Hold(LinkStep, frozen=True, kw_only=True):
    """Keep messages of an ``api`` (empty: all) that are sent over these links from now on."""

    api: str = ""


class Release(LinkStep, frozen=True, kw_only=True):
    """End drops and holds on these links (none: all); what was held is delivered."""


class ReleaseOne(Step, frozen=True, kw_only=True):
    """Deliver the message that was sent first of those that are held on a link, or last; the others stay held."""

    link: Link
    newest: bool


class Withhold(NodeStep, frozen=True, kw_only=True):
    """Keep the controller's metadata from brokers, which stay registered."""


class Isolate(NodeStep, frozen=True, kw_only=True):
    """Cut brokers off from all brokers and the controller, not from clients."""


# --- what several of these together do -------------------------------------------------------------------------------


class Shrink(NodeStep, frozen=True, kw_only=True):
    """Drop the fetches of followers to the leader until they are out of the ISR; they stay dropped."""


class Fence(NodeStep, frozen=True, kw_only=True):
    """Cut brokers off from the controller until it has given them up; they stay cut off."""


class MoveLeader(Step, frozen=True, kw_only=True):
    """Make a broker the leader, on purpose and in order."""

    to: Broker


# --- states ----------------------------------------------------------------------------------------------------------


class Leads(msgspec.Struct, frozen=True):
    """A broker leads, by the controller's word and by its own."""

    broker: Broker


class SomebodyLeads(msgspec.Struct, frozen=True):
    """The leader that the controller names runs and leads."""


class NobodyLeads(msgspec.Struct, frozen=True):
    """The controller names no leader."""


class IsFenced(msgspec.Struct, frozen=True):
    """The controller counts a broker as dead, or not (``expected``)."""

    broker: Broker
    expected: bool


class InIsr(msgspec.Struct, frozen=True):
    """A broker is in the ISR of the controller, or not (``expected``)."""

    broker: Broker
    expected: bool


class IsrIs(msgspec.Struct, frozen=True):
    """The ISR of the controller has exactly these members."""

    brokers: tuple[Broker, ...]


class Has(msgspec.Struct, frozen=True):
    """A broker's log has a record, or lacks it (``expected``)."""

    broker: Broker
    record: Record
    expected: bool


class Covers(msgspec.Struct, frozen=True):
    """The high watermark of a broker is above the place of a record in its log, or not (``expected``)."""

    broker: Broker
    record: Record
    expected: bool


class Answered(msgspec.Struct, frozen=True):
    """The client got an answer about a record; ``acknowledged``: a good one."""

    record: Record
    acknowledged: bool


class InSync(msgspec.Struct, frozen=True):
    """Every replica runs, is in the ISR, and has the same log end and high watermark at that end."""


State = Leads | SomebodyLeads | NobodyLeads | IsFenced | InIsr | IsrIs | Has | Covers | Answered | InSync


class Form(NamedTuple):
    """How a verb is written: what its documentation and its errors show."""

    step: type[Step]
    form: str


NODES: Final = "BROKER..."
LINKS: Final = "LINK..."
#: Every state that a script can wait for.
STATES: Final = (
    "BROKER leads, somebody leads, nobody leads, BROKER is [not] fenced, BROKER is [not] in the isr, isr is BROKER..., "
    "BROKER has RECORD, BROKER lacks RECORD, high watermark of BROKER covers RECORD (or misses), RECORD is answered, "
    "RECORD is acknowledged, all are in sync"
)
#: Every verb of the language, in the order of its documentation.
VERBS: Final[dict[str, Form]] = {
    "write": Form(Write, "write RECORD to BROKER [acks=0|1|all] [as PRODUCER]"),
    "send": Form(Send, "send RECORD to BROKER [acks=0|1|all] [as PRODUCER]"),
    "retry": Form(Retry, "retry RECORD to BROKER"),
    "read": Form(Read, "read"),
    "wait": Form(Wait, "wait N ms | wait N s | wait [up to N s] until STATE [and STATE]..."),
    **{deed: Form(Do, f"{deed} {NODES}") for deed in Deed},
    "never": Form(Abandon, f"never start {NODES}"),
    "corrupt": Form(Corrupt, "corrupt RECORD on BROKER"),
    "cut": Form(Cut, f"cut {LINKS}"),
    "heal": Form(Heal, "heal [LINK...]"),
    "drop": Form(Drop, f"drop [API] {LINKS}"),
    "hold": Form(Hold, f"hold [API] {LINKS}"),
    "release": Form(Release, "release [LINK...] | release first|last LINK"),
    "withhold": Form(Withhold, f"withhold metadata from {NODES}"),
    "isolate": Form(Isolate, f"isolate {NODES}"),
    "shrink": Form(Shrink, f"shrink {NODES}"),
    "fence": Form(Fence, f"fence {NODES}"),
    "move": Form(MoveLeader, "move leader to BROKER"),
}
