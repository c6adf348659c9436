"""Cells of groups: where members begin, and commits that are refused, not answered, or made by members given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey, Fields
from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import Cell, Seen
from harness.lab.client_table.cells.batches import Strikes, unmet
from harness.lab.client_table.relay import Do, Strike
from harness.lab.client_table.stage import INPUT, CellStage
from workloads import Assignment, ClientCapability, Consumer, Fetched, Membership, Offsets

_NEEDS: Final = (ClientCapability.SUBSCRIPTION, ClientCapability.COMMITS)
_BEGIN: Final = "Kafka's protocol: a member begins at the offset that its group has committed"
_COMMIT: Final = "Kafka's protocol: a commit that was said to be done is what the group remembers"
_FENCED: Final = "Kafka's protocol: a member that is none any more cannot commit"
#: The offsets that the group has, that the member commits, and that another one commits.
_BEFORE, _OWN, _OTHERS = 2, 3, 4
_RECORDS: Final = 6
_SESSION_MS: Final = 6_000


def begins(stage: CellStage, strikes: Strikes, *, isolation: str = "read_committed") -> Seen:
    """Have a member of a group with a committed offset join, and see which record it is given first."""
    group = stage.name("group")
    stage.write(INPUT, _RECORDS)
    records = stage.log(INPUT)
    stage.commit(group, records[_BEFORE].offset)
    stage.strike(*strikes())
    member = stage.consumer(Membership(group), isolation)  # type: ignore[arg-type]
    stage.join(member)
    read = [*stage.sent.read, *stage.read(member, partial(_got, stage))]
    member.close()
    first = next((record.offset for record in read if record.partition == INPUT), None)
    expected, breaches = records[_BEFORE].offset, list(stage.sent.breaches)
    stage.tell(f"the group has committed {expected}, and the member was given {first} first")
    if first is None and not breaches:
        breaches.append((Breach.SKIPPED, "the member was given no record"))
    if first is not None and first != expected:
        kind = Breach.REPEATED if first < expected else Breach.SKIPPED
        breaches.append((kind, f"the group had committed {expected}, and its member began at {first}"))
    return Seen(breaches, unmet=unmet(stage))


def _got(stage: CellStage, records: Sequence[Fetched]) -> bool:
    return any(record.partition == INPUT for record in (*stage.sent.read, *records))


def commits(stage: CellStage, strikes: Strikes) -> Seen:
    """Have a member commit, and ask the group what it remembers."""
    group = stage.name("group")
    stage.write(INPUT, _RECORDS)
    stage.commit(group, _BEFORE)
    stage.strike(*strikes())
    member = stage.consumer(Membership(group))
    stage.join(member)
    breaches = _committed(stage, member, group)
    member.close()
    return Seen(breaches, unmet=unmet(stage))


def _committed(stage: CellStage, member: Consumer, group: str) -> list[tuple[Breach, str]]:
    """Commit, and hold the answer against what the group remembers."""
    assert member.commits is not None  # noqa: S101 - the cell needs them
    told: Offsets = stage.ask("commit", partial(member.commits.commit, {INPUT: _OWN}))
    remembered = stage.committed(group)
    stage.tell(f"the group remembers {remembered}")
    if INPUT in told.offsets and remembered != _OWN:
        return [(Breach.UNTRUE_COMMIT, f"a commit of {_OWN} was said to be done, and the group has {remembered}")]
    return []


def frozen(stage: CellStage, *, static: bool = False) -> Seen:
    """Keep the heartbeats of a member back until another one has its place, and have both commit.

    A ``static`` member is replaced at once by another one with its instance id.
    """
    group, instance = stage.name("group"), stage.name("instance") if static else None
    stage.write(INPUT, _RECORDS)
    stage.strike(*([] if static else [Strike(ApiKey.HEARTBEAT, Do.DELAY, times=None)]))
    membership = Membership(group, instance, session_timeout_ms=_SESSION_MS)
    member = stage.consumer(membership)
    stage.join(member)
    successor = stage.cluster.world.clients.consumer(stage.cluster.next_process(), membership)
    assigned: list[Assignment] = []
    polling = [True]

    def polled(_: object) -> None:
        if polling[0]:
            successor.poll(_SESSION_MS // 60, polled)

    assert successor.subscription is not None  # noqa: S101 - the cluster's own client joins groups
    assert successor.commits is not None  # noqa: S101 - and commits
    successor.subscription.subscribe([INPUT.rpartition("-")[0]], assigned.append)
    successor.poll(_SESSION_MS // 60, polled)
    stage.wait("another member is assigned", lambda: any(INPUT in each.partitions for each in assigned))
    answers: list[Offsets] = []
    successor.commits.commit({INPUT: _OTHERS}, answers.append)
    stage.wait("another member commits", lambda: bool(answers) and bool(answers[-1].offsets))
    stage.tell(f"another member has its place, and has committed {_OTHERS}")
    breaches = _committed(stage, member, group)
    remembered = stage.committed(group)
    if not breaches and remembered != _OTHERS:
        breaches = [(Breach.UNTRUE_COMMIT, f"the group had {_OTHERS}, and has {remembered} by a member given up")]
    polling[0] = False
    successor.close()
    member.close()
    return Seen(breaches, unmet="" if static else unmet(stage))


def _fetched(do: Do, error: ErrorCode = ErrorCode.NONE, times: int = 2, **more: Any) -> Strike:
    return Strike(ApiKey.OFFSET_FETCH, do, error, times, **more)


def _of_group(error: ErrorCode) -> Callable[[Fields], None]:
    """The error of a whole group: version 8 and later name groups in their answer."""

    def alter(fields: Fields) -> None:
        for each in fields.get("groups") or [fields]:
            each["error_code"], each["topics"] = int(error), []

    return alter


def _older(fields: Fields) -> None:
    """Tell an offset that is older."""
    for each in fields.get("groups") or [fields]:
        for topic in each["topics"]:
            for part in topic["partitions"]:
                part["committed_offset"] = min(part["committed_offset"], 0)


def _begin(name: str, happens: str, strikes: Strikes, **more: Any) -> Cell:
    return Cell(name, happens, _BEGIN, partial(begins, strikes=strikes), Breach.SKIPPED, needs=_NEEDS, **more)


def _commit(name: str, happens: str, do: Do, error: ErrorCode = ErrorCode.NONE, times: int | None = 1) -> Cell:
    def strikes() -> list[Strike]:
        return [Strike(ApiKey.OFFSET_COMMIT, do, error, times)]

    return Cell(name, happens, _COMMIT, partial(commits, strikes=strikes), Breach.UNTRUE_COMMIT, needs=_NEEDS)


CELLS: Final = (
    _begin(
        "begin-unstable",
        "a member's question for its group's offset is answered with UNSTABLE_OFFSET_COMMIT twice",
        lambda: [_fetched(Do.ANSWER, ErrorCode.UNSTABLE_OFFSET_COMMIT)],
        finding="010",
    ),
    _begin(
        "begin-older",
        "a new coordinator tells a member an older offset than the group has committed",
        lambda: [_fetched(Do.ALTER, times=1, alter=_older)],
        permits={Breach.REPEATED: "the coordinator's own word is older, and nothing tells (finding 015)"},
        finding="015",
    ),
    _begin(
        "begin-coordinator-moves",
        "a member's question for its group's offset is answered with NOT_COORDINATOR twice",
        lambda: [_fetched(Do.ALTER, alter=_of_group(ErrorCode.NOT_COORDINATOR))],
    ),
    _begin(
        "begin-loading",
        "a member's question for its group's offset is answered with COORDINATOR_LOAD_IN_PROGRESS twice",
        lambda: [_fetched(Do.ALTER, alter=_of_group(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))],
    ),
    _begin(
        "begin-closed",
        "the connection is closed before a member has its group's offset",
        lambda: [_fetched(Do.CUT, times=1)],
    ),
    _commit(
        "commit-illegal-generation",
        "a commit is refused with ILLEGAL_GENERATION",
        Do.REFUSE,
        ErrorCode.ILLEGAL_GENERATION,
        None,
    ),
    _commit(
        "commit-unknown-member",
        "a commit is refused with UNKNOWN_MEMBER_ID",
        Do.REFUSE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        None,
    ),
    _commit(
        "commit-rebalance", "a commit is refused with REBALANCE_IN_PROGRESS", Do.REFUSE, ErrorCode.REBALANCE_IN_PROGRESS
    ),
    _commit(
        "commit-coordinator-moved",
        "a commit is refused with NOT_COORDINATOR twice",
        Do.REFUSE,
        ErrorCode.NOT_COORDINATOR,
        2,
    ),
    _commit("commit-closed", "a commit is lost with its connection", Do.LOSE),
    _commit(
        "commit-timed-out",
        "a commit is carried out and answered with REQUEST_TIMED_OUT",
        Do.ANSWER,
        ErrorCode.REQUEST_TIMED_OUT,
    ),
    Cell(
        "frozen-member",
        "a member's heartbeats are kept back for longer than its session; another one commits, and then it does",
        _FENCED,
        frozen,
        Breach.UNTRUE_COMMIT,
        needs=_NEEDS,
    ),
    Cell(
        "fenced-member",
        "another member with its group.instance.id takes a static member's place; both commit",
        f"KIP-345: {_FENCED[18:]}",
        partial(frozen, static=True),
        Breach.UNTRUE_COMMIT,
        needs=_NEEDS,
    ),
)
