"""The columns of the table: named choices of settings under which every story is performed.

Every column has replication factor 3, unless a story has another. Producers are idempotent where Kafka's would be: with
acks=all, unless a column says otherwise (KIP-679).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Final, NamedTuple

from workloads import IDEMPOTENCE, Settings, SettingsError, spelled, unknown_name

#: The setting by which a story chooses the number of brokers and replicas, and its default.
REPLICATION_FACTOR: Final = "replication.factor"
REPLICAS: Final = Settings().replication_factor

_ALL_1: Final[Mapping[str, object]] = {"acks": "all", IDEMPOTENCE: True}
_ALL_2: Final[Mapping[str, object]] = {**_ALL_1, "min.insync.replicas": 2}
_Q2: Final[Mapping[str, object]] = {**_ALL_1, "quorum.required.acks": 2}
_NEWEST: Final = {"leader.election": "largest-epoch-and-log-end"}
_UNCLEAN: Final = {"unclean.leader.election.enable": True}
_FLUSH: Final = {"flush.messages": 1}
_ELR: Final = {"eligible.leader.replicas": True}
#: The rules of replication that came after KIP-101, off.
_OLD: Final = {"strict.min.isr": False, "isr.join.epoch.rule": False, "fetch.fencing": False, "broker.epochs": False}


#: The settings of every column of transactions, which changes one of them.
_TRANSACTIONS: Final[Mapping[str, object]] = {
    **_ALL_2, "isolation.level": "read_committed", "transaction.version": 2, "planted.bug": "none",
}  # fmt: skip
#: The settings of every column of groups.
_GROUPS: Final[Mapping[str, object]] = {
    **_ALL_2, "group.protocol": "consumer", "commit.mode": "after-processing", "planted.bug": "none",
}  # fmt: skip


class Column(NamedTuple):
    """One column: its name, a line that says what it is, and its settings under Kafka's names.

    A story changes nothing in ``own`` settings, which are a reader's: they are performed as they are.
    """

    name: str
    meaning: str
    settings: Mapping[str, object]
    own: bool = False

    def chosen(self, overrides: Mapping[str, object]) -> Settings:
        """The settings as an object, with what a story changes in them.

        Raises:
            SettingsError: they do not fit together.
        """
        return Settings.from_mapping({**self.settings, **({} if self.own else overrides)})


_EVERY: Final = (
    Column("a0", "acks=0", {"acks": 0}),
    Column("a1", "acks=1", {"acks": 1}),
    Column("all/1", "acks=all, min ISR 1", _ALL_1),
    Column("all/1/U", "the same, unclean elections", {**_ALL_1, **_UNCLEAN}),
    Column("all/2", "acks=all, min ISR 2", _ALL_2),
    Column("all/2/U", "the same, unclean elections", {**_ALL_2, **_UNCLEAN}),
    Column("all/2/F", "all/2, flush.messages=1", {**_ALL_2, **_FLUSH}),
    Column("all/2/E", "all/2, eligible leader replicas", {**_ALL_2, **_ELR}),
    Column("all/2/EF", "all/2, both", {**_ALL_2, **_ELR, **_FLUSH}),
    Column("all/2/NI", "all/2, producers not idempotent", {**_ALL_2, IDEMPOTENCE: False}),
    Column("all/2/HW", "all/2, truncation to the high watermark", {**_ALL_2, **_OLD, "truncation": "high-watermark"}),
    Column("all/2/101", "all/2, truncation as in KIP-101", {**_ALL_2, **_OLD, "truncation": "kip-101"}),
    Column("q2/LEO", "KIP-250: two acknowledge, the longest log leads", {**_Q2, "leader.election": "largest-log-end"}),
    Column("q2/epoch", "KIP-250 with elections by leader epoch, then log end", {**_Q2, **_NEWEST}),
    Column("q2/isr", "KIP-250: two acknowledge, the first of the ISR leads", _Q2),
    Column("raft", "a majority acknowledges and elects", {**_ALL_1, "commit.rule": "majority", **_NEWEST}),
)


def _planted(name: str, settings: Mapping[str, object], **bugs: str) -> Iterator[Column]:
    """The controls of a column, in which the core has one planted bug each, by the letter that its name ends with."""
    for letter, bug in bugs.items():
        yield Column(f"{name}/{letter}", f"{name}, planted bug {bug}", {**settings, "planted.bug": bug})


#: By name, in the order of the table.
COLUMNS: Final[dict[str, Column]] = {column.name: column for column in _EVERY}
#: Four replicas or more can have one that the usual advice has not.
_OF_FOUR: Final = (Column("all/3", "acks=all, min ISR 3", {**_ALL_1, "min.insync.replicas": 3}),)


@cache
def of_replicas(replicas: int) -> Mapping[str, Column]:
    """The columns that fit this number of replicas; with four or more, that of min ISR 3 is among them."""
    if replicas == REPLICAS:
        return COLUMNS
    every = (*_EVERY, *_OF_FOUR) if replicas > REPLICAS else _EVERY
    return {column.name: column for column in every if _fits(column, replicas)}


def _fits(column: Column, replicas: int) -> bool:
    try:
        column.chosen({REPLICATION_FACTOR: replicas})
    except SettingsError:
        return False
    return True


#: The columns of stories of transactions: the versions, another reader, and wrong forms of the rules, each a control.
OF_TRANSACTIONS: Final[dict[str, Column]] = {
    column.name: column
    for column in (
        Column("v1", "all/2, transaction version 1, read_committed", {**_TRANSACTIONS, "transaction.version": 1}),
        Column("v2", "the same, transaction version 2", _TRANSACTIONS),
        Column("v2/RU", "v2, read_uncommitted", {**_TRANSACTIONS, "isolation.level": "read_uncommitted"}),
        *_planted(
            "v2",
            _TRANSACTIONS,
            M="marker-of-any-epoch",
            A="forget-abort-on-follower",
            H="pass-hanging-transaction",
            D="answer-before-decision",
        ),
    )
}
#: The columns of stories of groups: when members commit, what both logs promise, and wrong forms of the rules, each a
#: control.
OF_GROUPS: Final[dict[str, Column]] = {
    column.name: column
    for column in (
        Column("g", "all/2, members commit after they process (KIP-848)", _GROUPS),
        Column("c", "the same, the classic protocol", {**_GROUPS, "group.protocol": "classic"}),
        Column(
            "g/before", "the same, they commit before they process", {**_GROUPS, "commit.mode": "before-processing"}
        ),
        Column("g/auto", "the same, their library commits by itself", {**_GROUPS, "commit.mode": "auto"}),
        Column("g/U", "g, unclean elections", {**_GROUPS, **_UNCLEAN}),
        Column("g/1", "g, min ISR 1", {**_GROUPS, "min.insync.replicas": 1}),
        Column("g/1/U", "g/1, unclean elections", {**_GROUPS, **_UNCLEAN, "min.insync.replicas": 1}),
        *_planted(
            "g",
            _GROUPS,
            A="commit-offsets-after-append",
            M="commit-of-any-member",
            N="assign-unrevoked",
            F="load-first-commits",
        ),
    )
}
#: The columns of stories with a group and transactions, which commit its offsets: the versions, and wrong forms.
_PIPELINES: Final[Mapping[str, object]] = {**_GROUPS, "isolation.level": "read_committed", "transaction.version": 2}
OF_PIPELINES: Final[dict[str, Column]] = {
    column.name: column
    for column in (
        Column("o1", "g with transaction version 1, read_committed", {**_PIPELINES, "transaction.version": 1}),
        Column("o2", "the same, transaction version 2", _PIPELINES),
        Column("c2", "o2, the classic protocol", {**_PIPELINES, "group.protocol": "classic"}),
        *_planted(
            "o2",
            _PIPELINES,
            P="count-pending-offsets",
            A="count-aborted-offsets",
            K="keep-pending-offsets",
            M="offsets-of-any-member",
            U="answer-unstable-offsets",
        ),
    )
}
#: Every column by name: a story is performed in those of its kind.
EVERY: Final = {**COLUMNS, **of_replicas(REPLICAS + 1), **OF_TRANSACTIONS, **OF_GROUPS, **OF_PIPELINES}


def own_column(settings: Mapping[str, object]) -> Column:
    """A column of a reader's own settings; its name is what ``ackproof stories --settings`` takes.

    Where they name no protocol, groups have that of the named columns.
    """
    name = ",".join(f"{name}={spelled(value)}" for name, value in settings.items())
    return Column(name, "settings of your own", {"group.protocol": "consumer", **settings}, own=True)


def check_overrides(overrides: Mapping[str, object], columns: Mapping[str, Column]) -> None:
    """Check that what a story changes fits every one of its columns.

    Raises:
        SettingsError: it does not, or columns choose one of these settings.
    """
    chosen = {name for column in columns.values() for name in column.settings}
    for name in overrides:
        if name in chosen:
            raise SettingsError(f"{name} is chosen by the columns, so a story cannot set it; choose columns instead")
    Settings.from_mapping(overrides)
    for column in columns.values():
        try:
            column.chosen(overrides)
        except SettingsError as error:
            raise SettingsError(f"in the column {column.name}: {error}") from error


def column_named(name: str) -> Column:
    """The column of that name.

    Raises:
        KeyError: there is no such column; its text names the nearest.
    """
    if name not in EVERY:
        raise KeyError(unknown_name("column", name, EVERY))
    return EVERY[name]


def chosen_columns(patterns: Iterable[str], columns: Mapping[str, Column] = EVERY) -> tuple[str, ...]:
    """The names of ``columns`` that ``patterns`` choose: names, shell patterns ("all/2*", "*"), and "!..." that takes
    away again.

    In the order of the table. Raises:
        KeyError: a pattern fits no column; its text names the nearest.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        wanted = pattern.removeprefix("!")
        fitting = {name for name in columns if fnmatchcase(name, wanted)}
        if not fitting:
            raise KeyError(unknown_name("column", wanted, columns))
        chosen = chosen - fitting if pattern.startswith("!") else chosen | fitting
    return tuple(name for name in columns if name in chosen)
