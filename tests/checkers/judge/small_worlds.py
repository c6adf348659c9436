"""Small histories of each kind, as a log gives them that keeps its word, or breaks one of its rules."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from workloads import key_of, number_of
from workloads.operations import NOTHING, Effect, Event, EventType, Function, Poll, Reached, Record, Send

OK, FAIL, INFO, INVOKE = EventType.OK, EventType.FAIL, EventType.INFO, EventType.INVOKE
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
LOGS: Final = ("t-0", "t-1")
EFFECTS: Final = "o-0"
#: A reader, a member, a final reader and an operator are processes from these numbers on.
READER, MEMBER, PIPELINE, FINAL, OPERATOR = 20, 40, 60, 80, 100
#: Rules that a log may break in a history, by what it has to have.
OF_RECORDS: Final = ("appends twice", "passes over records")
OF_TRANSACTIONS: Final = ("shows aborted records", "shows open records", "loses a half")
OF_GROUPS: Final = (
    "forgets a commit", "keeps a deleted group", "fences no member", "repeats generations", "forgets groups early",
)  # fmt: skip
OF_PIPELINES: Final = ("takes aborted offsets", "gives work twice")
OF_APPLICATIONS: Final = (
    "forgets inputs", "does inputs again", "explains nothing", "stands still", "ends at once", "overtakes itself",
    "forgets its state",
)  # fmt: skip
OF_KEYS: Final = ("brings keys back", "cleans early", "cleans the last record")


@dataclass
class Entry:
    """A record at a place of a log: visible to readers of committed records once its transaction is committed."""

    log: str
    offset: int
    value: int
    key: int | None = None
    tombstone: bool = False
    state: str = "committed"
    time_us: int = 0


class World:
    """A log per name, and the events of its clients. Everything follows from the seed."""

    def __init__(
        self, chance: random.Random, rules: tuple[str, ...] = (), *, step_us: int = 1_000, levels: bool = False
    ) -> None:
        self.chance, self.step_us, self.levels = chance, step_us, levels
        self.events: list[Event] = []
        self.logs: dict[str, list[Entry]] = {}
        self.ends: dict[str, int] = {}
        self.positions: dict[tuple[int, str], int] = {}
        self.now, self.next_value, self.next_process = 0, 0, 1000
        self.wrong = chance.choice([None, *OF_RECORDS, *rules, *rules])
        self.waiting: list[Callable[[], None]] = []
        self.busy: set[int] = set()
        base = chance.choice([0, 0, 0, 7, 1_000_000_000])
        for log in (*LOGS, EFFECTS):
            self.logs[log], self.ends[log] = [], base

    def one_in(self, number: int) -> bool:
        return self.chance.randrange(number) == 0

    def breaks(self, rule: str) -> bool:
        """Say whether the log breaks this rule now: half of the times, if it is the rule that it breaks."""
        return self.wrong == rule and self.one_in(2)

    def soon(self, action: Callable[[], None]) -> None:
        """Do it now, or after other clients have done something."""
        if self.one_in(3):
            self.waiting.append(action)
        else:
            action()

    def fresh_process(self) -> int:
        self.next_process += 1
        return self.next_process

    def event(self, process: int, kind: EventType, function: Function, **rest: Any) -> None:
        self.now += self.chance.randint(1, 2 * self.step_us)
        if isinstance(rest.get("detail"), dict):
            rest["detail"] = msgspec.json.encode(rest["detail"]).decode()
        rest.setdefault("instance", process)
        self.events.append(Event(time_us=self.now, process=process, type=kind, function=function, **rest))

    def value(self) -> int:
        self.next_value += 1
        return self.next_value

    def append(self, log: str, send: Send, state: str = "committed") -> Entry:
        entry = Entry(log, self.ends[log], send.value, send.record_key, send.tombstone, state, self.now)
        self.logs[log].append(entry)
        self.ends[log] += 1
        if self.breaks("appends twice"):
            self.logs[log].append(
                Entry(log, self.ends[log], send.value, send.record_key, send.tombstone, state, self.now)
            )
            self.ends[log] += 1
        return entry

    def new_send(self, log: str, *, keyed: bool) -> Send:
        if not keyed:
            return Send(log, self.value())
        return Send(log, self.value(), None, self.chance.randint(1, 3), self.one_in(4))

    def send(self, process: int, *, keyed: bool = False, logs: tuple[str, ...] = LOGS) -> None:
        """A send outside transactions: acknowledged as a rule, else of unknown end, or refused."""
        if process in self.busy:
            return
        send = self.new_send(self.chance.choice(logs), keyed=keyed)
        who = {"instance": process // 2 * 2}
        self.event(process, INVOKE, Function.SEND, micro=(send,), **who)
        kind = self.chance.choice([OK] * 6 + [INFO, FAIL])
        self.busy.add(process)

        def answer() -> None:
            offset = None
            if kind is OK or (kind is INFO and self.one_in(2)):
                offset = self.append(send.partition, send).offset
            told = offset if kind is OK and not self.one_in(6) else None
            if kind is INFO and self.one_in(3):
                return  # The client waits for ever.
            self.busy.discard(process)
            error = None if kind is OK else self.chance.choice(["TIMEOUT", "OUT_OF_ORDER_SEQUENCE_NUMBER"])
            done = msgspec.structs.replace(send, offset=told)
            self.event(process, kind, Function.SEND, micro=(done,), error=error, **who)

        self.soon(answer)

    def transaction(
        self,
        process: int,
        logs: tuple[str, ...],
        *,
        keyed: bool = False,
        between: Callable[[], None] | None = None,
        begin: Callable[[], None] | None = None,
        number: int | None = None,
        **detail: Any,
    ) -> str:
        """One transaction with all that it sends, its end, and what happens meanwhile; how it ended."""
        many = self.chance.randint(1, 3) if number is None else number
        sends = [self.new_send(self.chance.choice(logs), keyed=keyed) for _ in range(many)]
        self.event(process, INVOKE, Function.TXN)
        if begin is not None:
            begin()
        entries = [(send, self.append(send.partition, send, "open")) for send in sends]
        if between is not None and self.one_in(2):
            between()
        ending = self.chance.choice(["commit"] * 5 + ["abort", "unknown", "unasked", "fenced"])
        asked = {"commit": "commit", "abort": "abort", "unknown": "commit", "unasked": None, "fenced": "commit"}[ending]
        self.now += self.chance.randint(1, self.step_us)
        end: dict[str, Any] = {"transactional_id": f"id{process}", "number": 0, "asked": asked}
        if asked is not None:
            end["ending_us"] = self.now
        committed = ending == "commit" or (ending == "unknown" and self.one_in(2))
        if ending == "fenced":
            end["superseded_us"] = max(0, self.now - self.chance.randint(1, self.step_us))
            if self.one_in(2):
                end["late"] = [send.value for send in sends if self.one_in(2)]
        for log in {send.partition for send in sends}:
            self.ends[log] += 1
        for _, entry in entries:
            entry.state = "committed" if committed or self.breaks("shows aborted records") else "aborted"
            if committed and self.breaks("loses a half"):
                self.logs[entry.log].remove(entry)
        kind = {"commit": OK, "abort": FAIL, "fenced": FAIL}.get(ending, INFO)
        told = tuple(msgspec.structs.replace(s, offset=None if self.one_in(8) else e.offset) for s, e in entries)
        if between is not None and self.one_in(4):
            between()
        reached = self.handed if detail.get("group") else ()
        self.event(process, kind, Function.TXN, micro=(*told, *reached), detail=end | detail)
        return "committed" if committed else "aborted"

    handed: tuple[Reached, ...] = ()

    def visible(self, log: str, level: str | None) -> list[Entry]:
        """The records that a reader of the level sees: one of committed records stops at the first open transaction."""
        seen = []
        for entry in self.logs[log]:
            if self.breaks("passes over records"):
                continue
            if (
                level == UNCOMMITTED
                or entry.state == "committed"
                or (entry.state == "open" and self.breaks("shows open records"))
            ):
                seen.append(entry)
            elif entry.state == "open":
                break
        return seen

    def poll(
        self, process: int, logs: tuple[str, ...], level: str | None, *, many: int = 2
    ) -> dict[str, tuple[Record, ...]]:
        """Read on; what was read."""
        self.event(process, INVOKE, Function.POLL, micro=(Poll(),), isolation=level)
        records = {}
        for log in logs:
            ahead = [e for e in self.visible(log, level) if e.offset >= self.positions.get((process, log), 0)][:many]
            if ahead:
                records[log] = tuple(Record(entry.offset, entry.value) for entry in ahead)
                self.positions[process, log] = ahead[-1].offset + 1
        self.event(process, OK, Function.POLL, micro=(Poll(records),), isolation=level)
        return records

    def assign(self, process: int, logs: tuple[str, ...], level: str | None) -> None:
        for kind in (INVOKE, OK):
            self.event(process, kind, Function.ASSIGN, partitions=logs, isolation=level)

    def final(self, process: int, log: str, level: str | None, detail: dict[str, Any] | None = None) -> None:
        self.assign(process, (log,), level)
        end = self.ends[log]
        for _ in range(2):
            self.poll(process, (log,), level, many=self.chance.choice([2, 4, 100]))
        self.poll(process, (log,), level, many=1000)
        self.event(process, OK, Function.DRAIN, partitions=(log,), offset=end, isolation=level, detail=detail)

    def finals(self, logs: tuple[str, ...], detail: dict[str, Any] | None = None, **more: Any) -> None:
        """Final readers of each log partition, of both levels where readers tell them."""
        process = FINAL
        for log in logs:
            if self.one_in(8):
                continue
            for level in (COMMITTED, UNCOMMITTED) if self.levels else (None,):
                for _ in range(self.chance.choice([1, 1, 2])):
                    self.final(process, log, level, detail)
                    process += 1
                    if more.get("between") and self.one_in(3):
                        more["between"]()

    def steps(self, number: int, *choices: Callable[[], object]) -> None:
        for _ in range(number):
            self.chance.choice(choices)()
            if self.one_in(2):
                self.settle(1)
        self.settle(len(self.waiting))

    def settle(self, number: int) -> None:
        """Do what waits: in any order."""
        for _ in range(min(number, len(self.waiting))):
            self.waiting.pop(self.chance.randrange(len(self.waiting)))()


def plain(chance: random.Random) -> World:
    world = World(chance)
    for reader in (READER, READER + 1):
        world.assign(reader, LOGS, None)
    world.steps(
        chance.randint(4, 14),
        lambda: world.send(chance.choice([0, 1, 2])),
        lambda: world.send(chance.choice([0, 2])),
        lambda: world.poll(chance.choice([READER, READER + 1]), LOGS, None),
    )
    if not world.one_in(3):
        world.finals(LOGS, between=lambda: world.send(4))
    return world


def transactions(chance: random.Random) -> World:
    return _transactional(World(chance, OF_TRANSACTIONS, levels=True), keyed=False)


def keyed_transactions(chance: random.Random) -> World:
    step_us = chance.choice([1_000, 400_000])
    return _transactional(World(chance, OF_TRANSACTIONS + OF_KEYS, levels=True, step_us=step_us), keyed=True)


def _transactional(world: World, *, keyed: bool) -> World:
    chance = world.chance
    levels = chance.choice([(COMMITTED, COMMITTED), (COMMITTED, UNCOMMITTED), (UNCOMMITTED, UNCOMMITTED)])
    readers = dict(zip((READER, READER + 1), levels, strict=True))
    for reader, level in readers.items():
        world.assign(reader, LOGS, level)

    def poll() -> None:
        reader = chance.choice([*readers])
        world.poll(reader, LOGS, readers[reader])

    producers = iter(range(10, 20))
    world.steps(
        chance.randint(3, 8),
        lambda: world.transaction(next(producers), LOGS, keyed=keyed, between=poll),
        poll,
        lambda: world.send(0, keyed=keyed),
    )
    times = _kept(chance) if keyed else None
    if not world.one_in(5):
        world.finals(LOGS, times, between=(lambda: _clean(world, times)) if keyed else None)
    if not keyed and world.one_in(3):
        world.now += 1000 * chance.choice([1, 50])
        end = world.ends[LOGS[0]]
        stable = {"high_watermark": end, "open_ms": chance.choice([1, 30])}
        world.event(90, OK, Function.STABLE, micro=(Reached(LOGS[0], end),), detail=stable)
    return world


def keyed(chance: random.Random) -> World:
    world = World(chance, OF_KEYS, step_us=chance.choice([1_000, 400_000]))
    for reader in (READER, READER + 1):
        world.assign(reader, LOGS[:1], None)
    world.steps(
        chance.randint(4, 12),
        lambda: world.send(chance.choice([0, 1, 2]), keyed=True, logs=LOGS[:1]),
        lambda: world.send(0, keyed=True, logs=LOGS[:1]),
        lambda: world.poll(chance.choice([READER, READER + 1]), LOGS[:1], None),
    )
    times = _kept(chance)
    _clean(world, times)
    for process in range(FINAL, FINAL + chance.choice([1, 2, 2, 3])):
        world.final(process, LOGS[0], None, times)
        if world.one_in(3):
            world.send(4, keyed=True, logs=LOGS[:1])
        _clean(world, times)
    return world


def _kept(chance: random.Random) -> dict[str, int]:
    return {"record_ms": chance.choice([0, 0, 5_000]), "tombstone_ms": chance.choice([0, 0, 5_000])}


def _clean(world: World, times: dict[str, int] | None) -> None:
    """Remove some records that have a later one of their key, and tombstones, after their time."""
    assert times is not None
    for log, entries in world.logs.items():
        for entry in list(entries):
            later = any(
                other.key == entry.key and other.offset > entry.offset and other.state == "committed"
                for other in entries
            )
            older = any(other.key == entry.key and other.offset < entry.offset for other in world.logs[log])
            age_ms = (world.now - entry.time_us) / 1000
            old = age_ms > times["record_ms"] + (0 if later or not entry.tombstone else times["tombstone_ms"])
            goes = later or (entry.tombstone and not older) or entry.state == "aborted"
            goes |= world.breaks("cleans the last record") or (entry.tombstone and world.breaks("brings keys back"))
            old |= world.breaks("cleans early")
            if goes and old and entry.state != "open" and world.one_in(2):
                world.logs[log].remove(entry)


def retention(chance: random.Random) -> World:
    world = World(chance, step_us=400_000)
    times = {"retention_ms": chance.choice([2_000, 5_000])}
    for reader in (READER, READER + 1):
        world.assign(reader, LOGS, None)

    def roll() -> None:
        log = chance.choice(LOGS)
        old = [e for e in world.logs[log] if world.now - e.time_us > 1000 * times["retention_ms"]]
        kept = [e for e in world.logs[log] if e not in old]
        world.logs[log] = kept
        start = kept[0].offset if kept else world.ends[log]
        if old and not world.one_in(3):
            world.event(90, OK, Function.LOG_START, micro=(Reached(log, start),))

    world.steps(
        chance.randint(5, 14),
        lambda: world.send(chance.choice([0, 1, 2])),
        lambda: world.send(0),
        lambda: world.poll(chance.choice([READER, READER + 1]), LOGS, None),
        roll,
    )
    roll()
    if not world.one_in(6):
        world.finals(LOGS, times, between=roll)
    return world


class Group:
    """A group of two members of one log partition, each with its own generation, and an operator beside them."""

    def __init__(self, world: World, name: str, first: int, level: str | None, *, static: bool = False) -> None:
        self.world, self.name, self.level, self.static = world, name, level, static
        self.first, self.owner, self.generation = first, first, 0
        self.committed = NOTHING
        self.unprocessed: tuple[int, int] | None = None
        self.kept_ms: int | None = None

    @property
    def detail(self) -> dict[str, Any]:
        return {"group": self.name} | ({} if self.kept_ms is None else {"retention_ms": self.kept_ms})

    def told(self, **more: Any) -> dict[str, Any]:
        return self.detail | ({"instance_id": "m"} if self.static else {}) | more

    def forget(self) -> None:
        """Its members go for so long that its offsets are forgotten, or for less; then another one comes."""
        if self.kept_ms is not None:
            self.world.now += 0 if self.world.breaks("forgets groups early") else 1000 * self.kept_ms
            self.owner, self.generation, self.committed = self.owner + 1, 0, NOTHING
            self.move()

    def move(self) -> None:
        """The log partition goes to a new member, which begins at what was committed."""
        if self.generation:
            self.owner += 1
        if not self.world.breaks("repeats generations"):
            self.generation += 1
        elif self.world.one_in(2):
            self.generation = max(0, self.generation - 1)
        self.unprocessed = None
        world, log = self.world, LOGS[0]
        for kind in (INVOKE, OK):
            world.event(self.owner, kind, Function.SUBSCRIBE, partitions=(log,), isolation=self.level)
        detail = self.told(generation=self.generation)
        world.event(self.owner, OK, Function.REBALANCE, partitions=(log,), detail=detail)
        world.positions[self.owner, log] = max(0, self.committed)

    def poll(self) -> None:
        world, log = self.world, LOGS[0]
        since = world.positions.get((self.owner, log), 0)
        read = world.poll(self.owner, (log,), self.level)
        if log in read:
            begin = self.unprocessed[0] if self.unprocessed else max(since, 0)
            self.unprocessed = (begin, read[log][-1].offset + 1)

    def work(self) -> None:
        """Process what was read, and commit it."""
        if self.unprocessed is None:
            return
        since, upto = self.unprocessed
        micro = (Reached(LOGS[0], upto, since),)
        self.world.event(self.owner, OK, Function.PROCESS, micro=micro, detail=self.told())
        self.unprocessed = None
        if not self.world.one_in(4):
            self.commit(self.owner, Function.COMMIT, upto)

    def commit(self, process: int, function: Function, offset: int) -> None:
        world, micro = self.world, (Reached(LOGS[0], offset),)
        kind = world.chance.choice([OK] * 6 + [INFO, FAIL])
        detail = self.told(generation=self.generation) if function is Function.COMMIT else self.detail
        who = {"process": world.fresh_process(), "function": function, "micro": micro, "detail": detail}
        world.event(kind=INVOKE, instance=process, **who)

        def answer() -> None:
            taken = kind is OK or (kind is INFO and world.one_in(2))
            kept = function is Function.DELETE_GROUP and world.breaks("keeps a deleted group")
            if taken and not kept and not world.breaks("forgets a commit"):
                self.committed = offset
            if kind is not INFO or world.one_in(2):
                world.event(kind=kind, instance=process, **who)
            if function is Function.COMMIT and world.breaks("fences no member") and self.owner > self.first:
                self.commit_of_old_member(offset)

        world.soon(answer)

    def commit_of_old_member(self, offset: int) -> None:
        old = self.world.chance.randrange(self.first, self.owner)
        who = {"process": self.world.fresh_process(), "function": Function.COMMIT, "instance": old}
        for kind in (INVOKE, OK):
            self.world.event(kind=kind, micro=(Reached(LOGS[0], offset),), detail=self.told(), **who)
        self.committed = offset

    def operate(self) -> None:
        end = self.world.ends[LOGS[0]]
        start = self.world.logs[LOGS[0]][0].offset if self.world.logs[LOGS[0]] else end
        if self.world.one_in(2):
            self.commit(OPERATOR, Function.RESET, self.world.chance.randint(start, end))
            self.move()
        else:
            self.commit(OPERATOR, Function.DELETE_GROUP, NOTHING)
            self.move()

    def seek(self) -> None:
        log, world = LOGS[0], self.world
        offset = world.chance.choice([world.ends[log], max(0, self.committed)])
        for kind in (INVOKE, OK):
            world.event(self.owner, kind, Function.SEEK, micro=(Reached(log, offset),), detail=self.told())
        world.positions[self.owner, log] = offset
        self.unprocessed = None

    def ask(self) -> None:
        asked = {"process": self.world.fresh_process(), "function": Function.COMMITTED, "detail": self.detail}
        self.world.event(kind=INVOKE, **asked)
        told = (Reached(LOGS[0], self.committed),)
        self.world.soon(lambda: self.world.event(kind=OK, micro=told, **asked))


def groups(chance: random.Random) -> World:
    with_transactions, forgets = chance.randrange(3) == 0, chance.randrange(4) == 0
    world = World(chance, OF_GROUPS, levels=with_transactions, step_us=400_000 if forgets else 1_000)
    level = chance.choice([COMMITTED, UNCOMMITTED]) if with_transactions else None
    static = world.one_in(4)
    members = [Group(world, "g", MEMBER, level, static=static)]
    if world.one_in(3):
        members.append(Group(world, "h", MEMBER + 10, level))
    world.assign(READER, LOGS[:1], level)
    for group in members:
        group.kept_ms = chance.choice([2_000, 8_000]) if forgets else None
        group.move()
    keyed = world.one_in(4)
    producers = iter(range(10, 20))

    def write() -> None:
        if with_transactions and world.one_in(2):
            world.transaction(next(producers), LOGS[:1], keyed=keyed)
        else:
            world.send(0, keyed=keyed, logs=LOGS[:1])

    write()
    world.steps(
        chance.randint(5, 14),
        write,
        lambda: chance.choice(members).poll(),
        lambda: chance.choice(members).poll(),
        lambda: chance.choice(members).work(),
        lambda: chance.choice(members).work(),
        lambda: chance.choice(members).ask(),
        lambda: chance.choice(members).move(),
        members[0].operate,
        members[0].seek,
        members[0].forget,
        lambda: world.poll(READER, LOGS[:1], level),
    )
    for group in members:
        group.ask()
    world.finals(LOGS[:1], {"record_ms": 0, "tombstone_ms": 0} if keyed else None)
    return world


class Pipeline(Group):
    """A group whose members write one record for each that they read, in a transaction with the offsets."""

    def work(self) -> None:
        log, world = LOGS[0], self.world
        read = world.poll(self.owner, (log,), COMMITTED, many=world.chance.choice([1, 2]))
        if log not in read:
            return
        sources = tuple(record.offset for record in read[log])
        upto = sources[-1] + 1
        done = (Reached(log, upto, sources[0]),)
        world.event(self.owner, OK, Function.PROCESS, micro=done, detail=self.told())
        handed_us = 0
        detail = {"group": self.name}

        def hand_over() -> None:
            nonlocal handed_us
            for kind in (INVOKE, OK):
                micro = (Reached(log, upto),)
                world.event(self.owner + 500, kind, Function.OFFSETS, micro=micro, instance=self.owner, detail=detail)
            handed_us = world.now

        world.handed = (Reached(log, upto),)
        hand_over()
        state = world.transaction(
            self.owner + 600,
            (EFFECTS,),
            number=len(sources),
            between=self.poll_effects,
            group=self.name,
            handed_us=handed_us,
            sources={log: sources},
        )
        if (state == "committed" and not world.breaks("gives work twice")) or world.breaks("takes aborted offsets"):
            self.committed = upto
        if state != "committed" or world.one_in(3):
            self.move()

    def poll_effects(self) -> None:
        self.world.poll(READER, (EFFECTS,), COMMITTED)
        if self.world.one_in(2):
            self.ask()


def pipelines(chance: random.Random) -> World:
    world = World(chance, OF_GROUPS + OF_PIPELINES, levels=True)
    members = [Pipeline(world, "g", PIPELINE, COMMITTED)]
    if world.one_in(3):
        members.append(Pipeline(world, "h", PIPELINE + 10, COMMITTED))
    world.assign(READER, (EFFECTS,), COMMITTED)
    for group in members:
        group.move()
    producers = iter(range(10, 20))

    def write() -> None:
        if world.one_in(3):
            world.transaction(next(producers), LOGS[:1])
        else:
            world.send(0, logs=LOGS[:1])

    write()
    write()
    world.steps(
        chance.randint(4, 10),
        write,
        lambda: chance.choice(members).work(),
        lambda: chance.choice(members).work(),
        lambda: chance.choice(members).ask(),
        lambda: chance.choice(members).move(),
        members[0].poll_effects,
    )
    for group in members:
        group.ask()
    world.finals((LOGS[0], EFFECTS))
    return world


def folded(world: World, inputs: list[int], value: int) -> dict[str, int]:
    """The results of a program that keeps the inputs of a key, with one more."""
    if world.breaks("forgets its state"):
        inputs.clear()
    inputs.append(value)
    return {"count": len(inputs), "sum": sum(map(number_of, inputs)), "last": inputs[0 if world.one_in(8) else -1]}


def applications(chance: random.Random) -> World:
    """A user's program: it does inputs in the order of each log, and commits how far it is."""
    world = World(chance, OF_APPLICATIONS)
    outputs: dict[bool, list[Effect]] = {True: [], False: []}
    committed: dict[str, int] = {}
    fold = chance.choice([None, None, "count", "sum", "last"])
    each, every = (1, 1) if fold else (chance.choice([1, 1, 2]), chance.choice([1, 1, 1, 2]))
    results: list[Effect] = []
    keys, state = chance.choice([1, 2]), dict[tuple[str, int], list[int]]()
    ends, commits = [0], chance.randrange(4) > 0

    def put(log: str, value: int, *, counts: bool) -> None:
        outputs[counts].append(Effect(log, value, ends[0]))
        if fold and value >= 0:
            inputs = state.setdefault((log, key_of(value, keys)), [])
            results.append(Effect(log, folded(world, inputs, value)[fold], ends[0]))
        ends[0] += 1

    def work() -> None:
        log = chance.choice(LOGS)
        ahead = [entry for entry in world.logs[log] if entry.offset >= committed.get(log, 0)][:2]
        for entry in reversed(ahead) if world.breaks("overtakes itself") else ahead:
            wanted = every == 1 or number_of(entry.value) % every == 0 or world.breaks("explains nothing")
            times = 2 if world.breaks("does inputs again") else 1
            for _ in range(each * times if wanted and not world.breaks("forgets inputs") else 0):
                put(log, entry.value, counts=not world.one_in(12))
        if world.breaks("explains nothing"):
            put(log, chance.choice([-1, 900]), counts=True)
        if ahead and not world.breaks("does inputs again"):
            committed[log] = ahead[-1].offset + 1

    world.steps(chance.randint(6, 14), lambda: world.send(chance.choice([0, 1, 2])), lambda: world.send(0), work)
    for _ in range(0 if world.breaks("stands still") else 20):
        work()
    world.finals(LOGS)
    for counts, kind in ((True, OK), (False, FAIL)):
        if outputs[counts]:
            world.event(-2, kind, Function.EFFECT, micro=tuple(outputs[counts]), node=0, instance=-1)
    if results:
        world.event(-2, INFO, Function.EFFECT, micro=tuple(results), node=0, instance=-1)
    loops = [0] if world.breaks("ends at once") else []
    facts = {
        "shape": "each", "outputs_each": each, "every": every, "group": "g", "keys": keys, "fold": fold,
        "promise": chance.choice(["exactly-once", "at-least-once", "at-most-once"]),
        "order": chance.choice(["none", "key"]),
        "inputs": LOGS, "outputs": [EFFECTS] if any(outputs.values()) or world.one_in(2) else [],
        "committed": committed if commits else {}, "crash_loops": loops,
        "unread": {EFFECTS: "slow"} if world.one_in(8) else {},
    }  # fmt: skip
    world.event(-2, INFO, Function.APPLICATION, detail=facts, instance=-1)
    return world


KINDS: Final[dict[str, Callable[[random.Random], World]]] = {
    "plain": plain,
    "transactions": transactions,
    "groups": groups,
    "pipelines": pipelines,
    "keyed": keyed,
    "keyed-transactions": keyed_transactions,
    "retention": retention,
    "applications": applications,
}
