"""Many overlapping transactions without a cycle leave nothing for networkx; one cycle among them leaves only itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.columns.ids import Numbers
from checkers.columns.loading import HistoryPart, RowBatch, Unit, assemble, part_of
from checkers.cycles import windows
from checkers.cycles.edges import NEVER, dependencies, tight
from checkers.cycles.shuffled import _edges_of, emitted
from checkers.cycles.trimming import core_steps, trim
from tests.workloads.history.event_strategies import examples
from workloads.history.clustering import cluster, joined
from workloads.history.rows import Rows, to_table
from workloads.operations import Event, EventType, Function, MicroOperation, Poll, Record, Send

KEYS, PROCESSES = 10, 8


def transactions(number: int, *, swap: bool = False) -> RowBatch:
    """The rows of these :func:`overlapping` transactions."""
    return _stored(overlapping(number, swap=swap))


def overlapping(number: int, *, swap: bool = False) -> list[tuple[float, int, EventType, tuple[MicroOperation, ...]]]:
    """A serial execution seen through overlapping clients: each transaction happens at one moment inside its own time.

    With ``swap`` two concurrent transactions read each other's writes.
    """
    chance = random.Random(1)
    log: list[list[int]] = [[] for _ in range(KEYS)]
    events: list[tuple[float, int, EventType, tuple[MicroOperation, ...]]] = []
    for turn in range(number):
        process, moment = turn % PROCESSES, float(turn)
        micro: list[MicroOperation] = []
        key = chance.randrange(KEYS)
        if log[key]:
            micro.append(Poll({f"k{key}": (Record(len(log[key]) - 1, log[key][-1]),)}))
        for _ in range(chance.randint(1, 2)):
            target = chance.choice([k for k in range(KEYS) if k != key])
            micro.append(Send(f"k{target}", turn * 4 + len(micro), len(log[target])))
            log[target].append(turn * 4 + len(micro) - 1)
        operation = tuple(micro)
        if swap and turn in (number // 2, number // 2 + 1):
            mine, other = ("a", "b") if turn == number // 2 else ("b", "a")
            operation = (Send(mine, 10**7), Poll({other: (Record(0, 10**7),)}))
        asked = tuple(Send(m.partition, m.value) if isinstance(m, Send) else Poll() for m in operation)
        events.append((moment - chance.uniform(0.5, 3.5), process, EventType.INVOKE, asked))
        events.append((moment + chance.uniform(0.5, 3.5), process, EventType.OK, operation))
    return sorted(events, key=lambda event: event[0])


def _stored(events: list[tuple[float, int, EventType, tuple[MicroOperation, ...]]]) -> RowBatch:
    return assemble([Unit(0, "transactions")], [_part(events)])


def _part(events: list[tuple[float, int, EventType, tuple[MicroOperation, ...]]]) -> HistoryPart:
    rows = Rows()
    for time_us, (_, process, kind, micro) in enumerate(events):
        rows.add(Event(time_us=time_us, process=process, type=kind, function=Function.TXN, micro=micro))
    clustered = cluster(rows.take())
    return part_of(to_table(clustered, rows.names), complete=True, events=len(events), joined=joined(clustered))


def core(batch: RowBatch) -> list[dict[str, object]]:
    return core_steps(batch.log, ww_deps=batch.ww_deps, joined=batch.joined, whole=batch.whole)


def test_twenty_thousand_transactions_without_a_cycle_leave_no_graph() -> None:
    batch = transactions(20_000)
    assert batch.joined.all()
    assert core(batch) == []


def test_one_cycle_among_them_leaves_a_graph_of_its_own_size() -> None:
    steps = core(transactions(20_000, swap=True))
    operations = {operation.event for edge in steps for operation in (edge.a, edge.b)}
    assert 2 <= len(operations) < 20
    assert sum(edge.step.type == "wr" and edge.step.key in ("a", "b") for edge in steps) == 2


@pytest.mark.parametrize(("order", "expected"), [("0101", [True, True]), ("0011", [False, True])])
def test_a_dependency_is_tight_if_the_operations_overlap_by_one_event(order: str, expected: list[bool]) -> None:
    read = (Poll({"b": (Record(0, 1),)}), Poll({"a": (Record(0, 0),)}))
    ends = [(Send(key, who, 0), read[who]) for who, key in enumerate("ab")]
    asked = [(Send(key, who), Poll()) for who, key in enumerate("ab")]
    seen = set[int]()
    events = []
    for who in map(int, order):
        kind, micro = (EventType.OK, ends[who]) if who in seen else (EventType.INVOKE, asked[who])
        seen.add(who)
        events.append((0.0, who, kind, micro))
    batch = _stored(events)
    depending = dependencies(batch.log, batch.ww_deps)
    assert sorted(tight(batch.log, depending).tolist()) == expected


@pytest.mark.parametrize("swap", [False, True])
def test_windows_leave_what_one_look_at_all_dependencies_leaves(swap: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dependencies that workers emit and windows keep, as in a history that is too large for one look."""
    batch = transactions(20_000, swap=swap)
    emitted = _edges_of(batch, 0, np.zeros(0, np.int64))
    assert emitted.shape[1] < 20_000 * 4, "tight dependencies only"
    monkeypatch.setattr(windows, "WINDOW_EVENTS", 1_000)
    suspects = by_windows(emitted)
    assert suspects.tolist() == at_once(emitted).tolist()
    assert 2 <= len(suspects) < 20 if swap else not len(suspects)
    sizes = [part.shape[1] for _, part in windows.cut(0, emitted)]
    assert len(sizes) == 40
    assert max(sizes) < emitted.shape[1] / 20, "nobody gets all dependencies"


def test_histories_that_are_judged_together_emit_what_each_emits_alone() -> None:
    first, second = (_part(overlapping(number, swap=True)) for number in (300, 200))
    together = assemble([Unit(4, "first"), Unit(7, "second")], [first, second])
    alone = [assemble([Unit(4, "first")], [first]), assemble([Unit(7, "second")], [second])]
    expected = [each for batch in alone for each in emitted(batch, {4, 7}, {})]
    for of_both, of_one in zip(emitted(together, {4, 7}, {}), expected, strict=True):
        assert of_both[0] == of_one[0]
        assert of_both[1].tolist() == of_one[1].tolist()
    assert [window for window, _ in expected] == [(4, 0), (7, 0)]
    assert [window for window, _ in emitted(together, {7}, {})] == [(7, 0)]


dependency_lists = st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60)
spans = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=30, max_size=30)


@given(dependency_lists, spans, st.integers(1, 30))
@examples(100)
def test_windows_of_any_size_leave_what_one_look_leaves(
    pairs: list[tuple[int, int]], lasting: list[tuple[int, bool]], window: int
) -> None:
    began = np.array([max(-1, index - length) for index, (length, _) in enumerate(lasting)])
    ended = np.array([index if completes else NEVER for index, (_, completes) in enumerate(lasting)])
    earlier, later = np.array([(a, b) for a, b in pairs if a != b], dtype=np.int64).reshape(-1, 2).T
    dependencies = np.stack([earlier, later, began[earlier], began[later], ended[earlier], ended[later]])
    dependencies = dependencies[:, dependencies[4] > dependencies[3]]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(windows, "WINDOW_EVENTS", window)
        assert by_windows(dependencies).tolist() == at_once(dependencies).tolist()


def by_windows(dependencies: Numbers) -> Numbers:
    """The dependencies that are left where every window is looked at by itself."""
    cut = list(windows.cut(0, dependencies))
    return windows.suspects_of(lambda look: map(look, cut)).get(0, np.zeros(0, np.int64))


def at_once(dependencies: Numbers) -> Numbers:
    """The dependencies that are left of all together."""
    earlier, later, *times = dependencies
    operations, first, number = np.unique(np.concatenate([earlier, later]), return_index=True, return_inverse=True)
    began, ended = (np.concatenate(times[row : row + 2])[first] for row in (0, 2))
    kept: Numbers = operations[trim(*np.split(number, 2), began, ended)]
    return kept


def test_a_chain_is_trimmed_whatever_its_length() -> None:
    chain = np.arange(5_000, dtype=np.int64)
    began, ended = 2 * chain, 2 * chain + 5
    assert not trim(chain[:-1], chain[1:], began, ended).any()
