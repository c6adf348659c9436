"""Cells of groups: where members begin, and commits that are refused, not answered, or made by members given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey, Fields
from harness.lab.client_table.breach import Breach
from harness.lab.client_table.cell import CellSeen, ClientCell
from harness.lab.client_table.cells.batches import Strikes, unmet
from harness.lab.client_table.cells.transactions import TRANSACTIONAL
from harness.lab.client_table.relay import Do, Strike
from harness.lab.client_table.stage import INPUT, CellStage
from harness.lab.findings import PARTITIONS
from workloads import (
    ClientCapability,
    Commits,
    Consumer,
    EventType,
    Fetched,
    Membership,
    MemberToken,
    Offsets,
    PollOutcome,
    SendOutcome,
)

_NEEDS: Final = (ClientCapability.SUBSCRIPTION, ClientCapability.COMMITS)
_BEGIN: Final = "Kafka's protocol: a member begins at the offset that its group has committed"
_COMMIT: Final = "Kafka's protocol: a commit that was said to be done is what the group remembers"
_GIVEN_UP: Final = "a member that was given up cannot commit"
#: The offsets that the group has, that the member commits, and that another one commits.
_BEFORE, _OWN, _OTHERS = 2, 3, 4
_RECORDS: Final = 6
_SESSION_MS: Final = 6_000
_POLL_MS: Final = 100
#: Questions of a member after another one has joined.
_ASKED_AGAIN: Final = 3
#: A library has seen by then that it is out of its group.
_SEEN_US: Final = 3_000_000


def begins(stage: CellStage, strikes: Strikes, *, isolation: str = "read_committed") -> CellSeen:
    """Have a member of a group with a committed offset join, and see which record it is given first."""
    group = stage.name("group")
    stage.write(INPUT, _RECORDS)
    records = stage.log(INPUT)
    stage.commit(group, records[_BEFORE].offset)
    stage.strike(*strikes())
    member = stage.consumer(Membership(group), isolation)  # type: ignore[arg-type]
    stage.join(member)
    read = stage.read(member, partial(_got, stage))
    member.close()
    of_input = [record for record in (*stage.sent.read, *read) if record.partition == INPUT]
    return CellSeen(_of_begins(stage, of_input, {INPUT: records[_BEFORE].offset}), unmet=unmet(stage))


def _got(stage: CellStage, records: Sequence[Fetched]) -> bool:
    return any(record.partition == INPUT for record in (*stage.sent.read, *records))


def commits(stage: CellStage, strikes: Strikes) -> CellSeen:
    """Have a member commit, and ask the group what it remembers."""
    group = stage.name("group")
    stage.write(INPUT, _RECORDS)
    stage.commit(group, _BEFORE)
    stage.strike(*strikes())
    member = stage.consumer(Membership(group))
    stage.join(member)
    breaches = _committed(stage, member, group)
    member.close()
    return CellSeen(breaches, unmet=unmet(stage))


def _committed(stage: CellStage, member: Consumer, group: str) -> list[tuple[Breach, str]]:
    """Commit, and hold the answer against what the group remembers."""
    assert member.commits is not None  # noqa: S101 - the cell needs them
    told: Offsets = stage.ask("commit", partial(member.commits.commit, {INPUT: _OWN}))
    remembered = stage.committed(group)
    stage.tell(f"the group remembers {remembered}")
    if INPUT in told.offsets and remembered != _OWN:
        return [(Breach.UNTRUE_COMMIT, f"a commit of {_OWN} was said to be done, and the group has {remembered}")]
    return []


def frozen(stage: CellStage, *, static: bool = False) -> CellSeen:
    """Keep the heartbeats of a member back until another one has its place, and have both commit.

    A ``static`` member is replaced at once by another one with its instance id.
    """
    group, instance = stage.name("group"), stage.name("instance") if static else None
    stage.write(INPUT, _RECORDS)
    stage.strike(*([] if static else [Strike(ApiKey.HEARTBEAT, Do.DELAY, times=None)]))
    membership = Membership(group, instance, session_timeout_ms=_SESSION_MS)
    member = stage.consumer(membership)
    stage.join(member)
    with stage.successor(membership) as successor:
        _commits_instead(stage, successor)
        breaches = _committed(stage, member, group)
        remembered = stage.committed(group)
        if not breaches and remembered != _OTHERS:
            breaches = [(Breach.UNTRUE_COMMIT, f"the group had {_OTHERS}, and has {remembered} by a member given up")]
    member.close()
    return CellSeen(breaches, unmet="" if static else unmet(stage))


def _commits_instead(stage: CellStage, successor: Commits) -> None:
    """Have the member that has taken the place of the one under test commit."""
    answers: list[Offsets] = []
    successor.commit({INPUT: _OTHERS}, answers.append)
    stage.wait("another member commits", lambda: bool(answers) and bool(answers[-1].offsets))
    stage.tell(f"another member has its place, and has committed {_OTHERS}")


def left(stage: CellStage) -> CellSeen:
    """Have a member poll no more until another one has its place, and then commit in a transaction all the same."""
    group = stage.name("group")
    stage.write(INPUT, _RECORDS)
    membership = Membership(group, session_timeout_ms=_SESSION_MS)
    member = stage.consumer(membership)
    stage.join(member)
    with stage.successor(membership) as successor:
        _commits_instead(stage, successor)
        stage.cluster.let_pass(_SEEN_US)
        producer = stage.producer(TRANSACTIONAL, stage.name("id"))
        calls = producer.transactions
        assert calls is not None  # noqa: S101 - the cell needs them
        assert member.commits is not None  # noqa: S101 - the cell needs them
        for step in (calls.init, calls.begin):
            stage.ask(step.__name__, step)
        token: MemberToken = stage.ask("membership", member.commits.ask_member)
        stage.ask("send offsets", partial(calls.send_offsets, {INPUT: _OWN}, token))
        end: SendOutcome = stage.ask("commit", calls.commit)
        producer.close()
        remembered = stage.committed(group)
        stage.tell(f"the group remembers {remembered}")
    member.close()
    words = "a member that was given up was told that its transaction is committed, and the group has"
    return CellSeen([(Breach.UNTRUE_COMMIT, f"{words} {remembered}")] if end.type is EventType.OK else [])


def unstable(stage: CellStage) -> CellSeen:
    """Answer a member with UNSTABLE_OFFSET_COMMIT until another one has joined, and see where it begins."""
    group = stage.name("group")
    committed: dict[str, int] = {}
    for partition in PARTITIONS:
        stage.write(partition, _RECORDS)
        committed[partition] = stage.log(partition)[_BEFORE].offset
        stage.commit(group, committed[partition], partition)
    strike = _fetched(Do.ANSWER, ErrorCode.UNSTABLE_OFFSET_COMMIT, None)
    stage.strike(strike)
    member = stage.consumer(Membership(group), "read_committed")
    stage.join(member)
    polls, records = True, list[Fetched]()

    def polled(outcome: PollOutcome) -> None:
        records.extend(outcome.records)
        if polls:
            member.poll(_POLL_MS, polled)

    member.poll(_POLL_MS, polled)
    stage.wait("the member asks", lambda: strike.struck > 0)
    with stage.successor(Membership(group)):
        struck = strike.struck
        stage.wait("the member has asked again", lambda: strike.struck >= struck + _ASKED_AGAIN)
        strike.times = 0
        stage.tell("it is answered from now on")
        stage.until(lambda: bool(records))
    polls = False
    member.close()
    return CellSeen(_of_begins(stage, [*stage.sent.read, *records], committed), unmet=unmet(stage))


def _of_begins(stage: CellStage, read: Sequence[Fetched], committed: Mapping[str, int]) -> list[tuple[Breach, str]]:
    """Hold the first record of each log partition against what the group had committed."""
    breaches: list[tuple[Breach, str]] = []
    for partition, expected in committed.items():
        first = next((record.offset for record in read if record.partition == partition), expected)
        stage.tell(f"{partition}: committed {expected}, and the member was given {first} first")
        if first != expected:
            kind = Breach.REPEATED if first < expected else Breach.SKIPPED
            breaches.append(
                (kind, f"the group had committed {expected} of {partition}, and its member began at {first}")
            )
    return breaches or ([] if read else [(Breach.SKIPPED, "the member was given no record")])


def _fetched(do: Do, error: ErrorCode = ErrorCode.NONE, times: int | None = 2, **more: Any) -> Strike:
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


def _begin(name: str, happens: str, strikes: Strikes, **more: Any) -> ClientCell:
    return ClientCell(name, happens, _BEGIN, partial(begins, strikes=strikes), Breach.SKIPPED, needs=_NEEDS, **more)


def _commit(name: str, happens: str, do: Do, error: ErrorCode = ErrorCode.NONE, times: int | None = 1) -> ClientCell:
    def strikes() -> list[Strike]:
        return [Strike(ApiKey.OFFSET_COMMIT, do, error, times)]

    return ClientCell(name, happens, _COMMIT, partial(commits, strikes=strikes), Breach.UNTRUE_COMMIT, needs=_NEEDS)


CELLS: Final = (
    ClientCell(
        "left-member",
        "a member polls no more for longer than max.poll.interval.ms; another one commits; it commits in a transaction",
        "KIP-447: a coordinator refuses offsets of a member that was given up, if its library says who it is",
        left,
        Breach.UNTRUE_COMMIT,
        needs=(*_NEEDS, ClientCapability.TRANSACTIONS),
        finding="014",
    ),
    ClientCell(
        "begin-unstable-rebalance",
        "a member is answered with UNSTABLE_OFFSET_COMMIT until another one has joined",
        _BEGIN,
        unstable,
        Breach.SKIPPED,
        needs=_NEEDS,
        finding="010",
    ),
    _begin(
        "begin-unstable",
        "a member's question for its group's offset is answered with UNSTABLE_OFFSET_COMMIT twice",
        lambda: [_fetched(Do.ANSWER, ErrorCode.UNSTABLE_OFFSET_COMMIT)],
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
    ClientCell(
        "frozen-member",
        "a member's heartbeats are kept back for longer than its session; another one commits, and then it does",
        f"Kafka's protocol: {_GIVEN_UP}",
        frozen,
        Breach.UNTRUE_COMMIT,
        needs=_NEEDS,
    ),
    ClientCell(
        "fenced-member",
        "another member with its group.instance.id takes a static member's place; both commit",
        f"KIP-345: {_GIVEN_UP}",
        partial(frozen, static=True),
        Breach.UNTRUE_COMMIT,
        needs=_NEEDS,
    ),
)
