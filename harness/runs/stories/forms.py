"""The forms of every step and every state: the grammar of scripts, and what documents say of it.

Slots are read by :mod:`harness.runs.stories.language`. A fault has its form, and its meaning, in its own file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from harness.runs.stories import group_script as g
from harness.runs.stories import steps as s
from harness.runs.stories.grammar import Form
from harness.runs.stories.group_states import GroupIsEmpty, HasCommitted, IsAssigned, IsDone
from nemesis.faults import Fault, LinkFault
from nemesis.repairs import RELEASE

_WRITE: Final = "NEW:record to BROKER:to [over RECORD:over] [ACKS:acks] [as NAME:producer]"


def _faults() -> Iterator[Form]:
    """The faults that scripts have, those together that one repair undoes, and then the repair."""
    for verb, repair in s.REPAIRS.items():
        undone = [fault for fault in s.SPOKEN if fault.lasts and fault.undone_by == repair]
        yield from map(_begins, undone)
        whom = "[LINKS:links]" if issubclass(undone[0], LinkFault) else "NODES:nodes"
        yield Form(s.Undo, f"{verb} {whom}", repair.in_a_script, {"verb": verb})
    yield from (_begins(fault) for fault in s.SPOKEN if not fault.lasts)


def _begins(fault: type[Fault]) -> Form:
    return Form(s.Begin, f"{fault.verb} {fault.operands}", fault.in_a_script, {"fault": fault})


#: Every step, in the order of the documentation.
STEPS: Final = (
    Form(
        s.WriteRecord,
        f"write {_WRITE}",
        "Send a record, wait 100 ms. over: with that key. Without acks: the column's. as: numbered by that producer",
    ),
    Form(s.SendRecord, f"send {_WRITE}", "Send one record, and do not wait"),
    Form(
        s.DeleteKey,
        "delete RECORD:deletes by NEW:record to BROKER:to [ACKS:acks]",
        "Send a tombstone under a name of its own: it deletes the key of a record, in a compacted topic",
    ),
    Form(s.Retry, "retry RECORD:record to BROKER:to", "Send a record again, unless it was acknowledged"),
    Form(
        s.BumpEpoch,
        "bump WRITER:producer",
        "Let a producer go on in its next epoch, with numbers from 0. What it sends again is as it was",
    ),
    Form(
        s.Read,
        "read [finds RECORDS:records]",
        "Let a fresh consumer read the log from its start; finds: it must get exactly these records, in this order",
    ),
    Form(
        s.ReadAs,
        "read ISOLATION:isolation finds RECORDS:records",
        "Let a fresh consumer of this level read: it must get exactly these records, in this order. It is not judged",
    ),
    Form(
        s.InitProducer,
        "init NEWPRODUCER:producer [after PRODUCER:after]",
        "Make a producer with transactions; after another it has its transactional id, and fences it",
    ),
    Form(s.BeginTransaction, "begin NEWTRANSACTION:transaction by PRODUCER:producer", "Begin a transaction"),
    Form(
        s.WriteInTransaction,
        "write NEW:record in TRANSACTION:transaction [over RECORD:over]",
        "Send one record in it to the leader, and wait 300 ms for the answer",
    ),
    Form(
        s.WriteInTransaction,
        "write NEW:record in TRANSACTION:transaction elsewhere",
        "The same to a second log partition: of its replicas 1 leads first. Other steps and states know nothing of it",
        {"elsewhere": True},
    ),
    Form(
        s.SendInTransaction, "send NEW:record in TRANSACTION:transaction [over RECORD:over]", "The same without waiting"
    ),
    Form(
        s.EndTransaction,
        "commit TRANSACTION:transaction",
        "Ask for its commit, and wait 300 ms for the answer",
        {"commit": True},
    ),
    Form(
        s.EndTransaction,
        "abort TRANSACTION:transaction",
        "Ask for its abort, and wait 300 ms for the answer",
        {"commit": False},
    ),
    Form(
        g.JoinGroup,
        "join NEWMEMBER:member",
        "Make a member of the group. It polls once; what it reads it processes and commits as commit.mode says",
    ),
    Form(g.PollOnce, "poll MEMBER:member", "Let it poll once more. Between its steps it sends heartbeats, and no more"),
    Form(
        g.PollOnce,
        "poll MEMBER:member halfway",
        "The same; what it reads it processes or commits, and stops between the two",
        {"halfway": True},
    ),
    Form(
        g.PollUntil,
        "poll MEMBER:member until STATES:states",
        "Let it poll again and again until all hold; at most as long as wait",
    ),
    Form(g.FinishWork, "finish MEMBER:member", "Let it do the other half, and wait a moment for answers"),
    Form(g.FreezeMember, "freeze MEMBER:member", "Let it stand still: it sends no heartbeats"),
    Form(g.ThawMember, "thaw MEMBER:member", "Let it go on. It does not know that it stood still"),
    Form(g.LeaveGroup, "leave MEMBER:member", "Let it leave the group"),
    Form(g.CrashMember, "crash MEMBER:member", "Let it die without a word"),
    Form(
        g.HandOver,
        "hand over RECORD:record of MEMBER:member in TRANSACTION:transaction",
        "Let the group commit the offset behind this record with the transaction, in the name of the member",
    ),
    Form(
        g.AskGroup,
        "ask group [finds LAST:last_record]",
        "Ask what the group has committed; it must be the offset right behind this record, or nothing",
    ),
    Form(
        g.SetGroup,
        "set group behind RECORD:record [in TRANSACTION:transaction]",
        "Commit for the group, which has no member, that it is behind this record: at once, or with the transaction",
        {"others": False},
    ),
    Form(
        g.SetGroup,
        "set others behind RECORD:record [in TRANSACTION:transaction]",
        "The same for another group: its commits let segments of the log of groups end, which then are cleaned",
        {"others": True},
    ),
    Form(g.ForgetGroup, "delete group", "Let the coordinator forget the group, which has no member, and its offsets"),
    Form(s.Wait, "wait TIME:ms", "Let time pass"),
    Form(
        s.WaitUntil,
        "wait [up to TIME:limit_ms] until STATES:states",
        "Wait until all hold at one moment; default: 10 s (200 s on real nodes without try) plus twice session and lag",
    ),
    *_faults(),
    Form(
        s.MoveCoordinator,
        "move coordinator to BROKER:broker",
        "Hand the log of transactions, or of groups, over: its leader is the coordinator, 1 when a script begins",
    ),
    Form(
        s.ReleaseOne,
        f"{RELEASE.verb} first LINK:link",
        "Deliver the message that was sent first of those that are held; the others stay held",
        {"newest": False},
    ),
    Form(
        s.ReleaseOne, f"{RELEASE.verb} last LINK:link", "The same with the message that was sent last", {"newest": True}
    ),
    Form(s.Flush, "flush NODES:nodes", "Force to disk what a broker has written, its high watermark too"),
    Form(s.Abandon, "never start NODES:nodes", "A dead broker does not return, not even at the end"),
    Form(
        s.Withhold,
        "withhold metadata from NODES:nodes",
        "Drop what the controller sends of its metadata; the broker stays registered",
    ),
    Form(s.Isolate, "isolate NODES:nodes", "Cut a broker off from all brokers and the controller, not from clients"),
    Form(
        s.Shrink,
        "shrink NODES:nodes",
        "Drop a broker's fetches to the leader, and write one record, until it is out of the ISR; they stay dropped",
    ),
    Form(
        s.Fence, "fence NODES:nodes", "Cut a broker off from the controller until it counts as dead; it stays cut off"
    ),
)
#: Every state that a step can wait for.
STATES: Final = (
    Form(s.Leads, "BROKER:broker leads", "It leads by the controller's word and by its own"),
    Form(s.SomebodyLeads, "somebody leads", "The leader that the controller names runs and leads"),
    Form(s.NobodyLeads, "nobody leads", "The controller names no leader"),
    Form(s.LeaderEpochIs, "leader epoch is NUMBER:epoch", "It is that of the controller's last election"),
    Form(
        s.ElectionsPrefer,
        "elections prefer NODES:brokers",
        "The replicas are listed in this order: the first that may lead is elected. A script begins with 0 1 2",
    ),
    Form(s.IsFenced, "BROKER:broker is [NOT:expected] fenced", "The controller counts it as dead"),
    Form(s.InIsr, "BROKER:broker is [NOT:expected] in the isr", "It is in the ISR of the controller"),
    Form(s.IsrIs, "isr is NODES:brokers", "The ISR of the controller has these members and no others"),
    Form(s.Has, "BROKER:broker has RECORD:record", "Its log has the record", {"expected": True}),
    Form(s.Has, "BROKER:broker lacks RECORD:record", "Its log does not have the record", {"expected": False}),
    Form(
        s.Covers,
        "high watermark of BROKER:broker covers RECORD:record",
        "Its log has the record, below the high watermark",
        {"expected": True},
    ),
    Form(
        s.Covers,
        "high watermark of BROKER:broker misses RECORD:record",
        "It does not cover the record",
        {"expected": False},
    ),
    Form(s.IsReady, "PRODUCER:producer is ready", "It was told that it is in charge of its transactional id"),
    *(
        Form(s.TransactionEnded, f"TRANSACTION:transaction is {how}", meaning, {"how": how})
        for how, meaning in {
            s.TransactionAnswer.COMMITTED: "Its producer was told so",
            s.TransactionAnswer.ABORTED: "Its producer was told so",
            s.TransactionAnswer.REFUSED: "Its producer got an error when it asked for the end",
        }.items()
    ),
    Form(
        s.Coordinates,
        "BROKER:broker coordinates alone",
        "It is the coordinator, and the ISR of its log has no other member",
        {"alone": True},
    ),
    Form(s.Coordinates, "BROKER:broker coordinates", "It is the coordinator, by the controller's word"),
    Form(
        s.Stable,
        "last stable offset of BROKER:broker covers RECORD:record",
        "Its log has the record, below the last stable offset",
        {"expected": True},
    ),
    Form(
        s.Stable,
        "last stable offset of BROKER:broker misses RECORD:record",
        "It does not cover the record",
        {"expected": False},
    ),
    Form(IsAssigned, "MEMBER:member is [NOT:expected] assigned", "It has the log partition, as it was told in a poll"),
    Form(IsDone, "MEMBER:member is done", "It waits for nothing"),
    Form(HasCommitted, "MEMBER:member has committed RECORD:record", "It was told that the group took this"),
    Form(GroupIsEmpty, "group is empty", "The coordinator knows of no member. It knows nothing until it is asked"),
    Form(s.Answered, "RECORD:record is answered", "The client has an answer", {"acknowledged": False}),
    Form(s.Answered, "RECORD:record is acknowledged", "The client has a good answer", {"acknowledged": True}),
    Form(
        s.Refused,
        "RECORD:record is refused [with ERROR:error]",
        "Each attempt was answered, and none well; the last answer was this error, such as NotEnoughReplicasError",
    ),
    Form(
        s.AllInSync,
        "all are in sync",
        "All are in the ISR; they have one log end, and their high watermarks are there",
    ),
)
#: The forms of each verb.
VERBS: Final[Mapping[str, tuple[Form, ...]]] = {
    verb: tuple(form for form in STEPS if form.verb == verb) for verb in dict.fromkeys(form.verb for form in STEPS)
}
