"""The page of recorded traces: the result of each when the core was held against it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.lab.conform import (
    ELSEWHERE,
    Comparison,
    FreeRun,
    Word,
    held_run,
    hold,
    known_deviations,
    story_of,
    traces_in,
    why_not,
)
from harness.records.run_record import read_record
from harness.runs.stories import known_stories
from scripts.free_runs import BROKEN, kept_runs
from scripts.reference.markdown import bullets, page, table, wrapped
from scripts.reference.stories import USUAL
from scripts.shown_bugs import SHOWN_BUGS, bugs_for

TRACES: Final = Path(__file__).parents[2] / "results" / "reference" / "conform"
FILE: Final = TRACES / "README.md"
INTRODUCTION: Final = """
Each trace is what Apache Kafka showed after the steps of a scripted story, recorded by `ackproof conform`; [the
guide](../../../docs/guides/conform.md) says how. "Outcome" is what the checkers found there, beside the story's file as
it is now; traces with a commit say nothing of anomalies that the file does not name. "Commit" is the one that brought a
trace of earlier code. The columns after it count steps by their result when the core performed the same story: the
same, passed within the step, a known deviation, unexplained. Transactions are of the Java client, the only one that
speaks version 2 of them (KIP-890), with the members beside them, but of G13; other clients are of librdkafka.
"""
UNPLAYED: Final = "Kafka can perform these in their usual column, and they have no trace here:"
OTHERWISE: Final = """
These come out otherwise than their files say, by what is not compared step by step. S19: a leader remains. Each step
rests, and in the rest after `release` broker 1, which lost its disk, fetches again and is in sync before its links are
cut; the core at this pace shows the same. G12: nothing is processed again. Kafka's coordinator of groups appends a
commit with fewer in-sync replicas than min ISR, too, and refuses it after `offsets.commit.timeout.ms` (its source of
October 2024, read), so it counts when that broker is back. The core's refuses it at once. G02, G03, G04, G10, G13 and
G14 have "group went back" by [finding 015](../../../docs/findings/015-new-coordinator.md): after the script each broker
coordinates in turn, and tells older offsets at first. G13 is of librdkafka. With the Java client (2026-11-29) 7 of its
51 steps are unexplained: the next coordinator does not count b, and answers no question for stable offsets. Perhaps, by
its source: Kafka's cleaner keeps the last marker of a producer as a batch without its record (`Cleaner.java`), so the
marker of u ends nothing there. The disk was not looked at.
"""
FREE_RUNS: Final = """
Runs of campaigns on Apache Kafka 4.3.1, 2026-11-27, by family of faults. `free-runs.tar.xz` has what was observed;
unpacked, `ackproof conform DIR/*` holds them. The core's controller must make every change that Kafka's logged, and
refuse the same proposals for the same reason, in some order; every act of a broker must follow a change. Of the first
80 runs no refusals were kept. That of an ineligible member raises the partition epoch in the core alone, a known
deviation.
"""
PLANTED: Final = """
Each of these planted bugs makes some of it not fit: the trace that is named, and the number of free runs, as
`python -m scripts.free_runs` counted them. Of bugs of groups and of transactions it has the number of traces of such
stories, too (`python -m scripts.shown_bugs`). Free runs hold the controller alone: no high watermark is held, and of a
truncation only whether some leader epoch began there. Leaders may propose what they like.
"""
#: By trace, planted bugs of the core that it shows, each with the fact that its rule makes another one first.
SHOWN: Final = {
    "S01-all-2": {
        "acknowledge-after-append": "answer to x",
        "commit-largest-log-end": "broker 0: written high watermark",
        "forget-epoch-start": "broker 0: epochs",
        "keep-fenced-in-isr": "isr",
        "checkpoint-log-end": "broker 0: written high watermark",
        "keep-fenced-out": "isr",
    },
    "S04-all-1": {"shrink-before-acceptance": "broker 0: written high watermark"},
    "S06-all-2": {"append-below-min-isr": "broker 0: log"},
    "S11-all-2-F": {"flush-on-leader-only": "broker 1: log"},
    "S17-all-2": {"fetch-from-any-epoch": "broker 1: log"},
    "S60-all-2": {"truncate-to-high-watermark": "broker 0: log"},
    "S27-all-2": {"commit-with-two": "answer to x"},
    "S35-all-2": {"keep-torn-batch": "broker 1: log"},
    "G02-g": {"commit-of-any-member": "committed by the group"},
    "G06-g": {
        "assign-unrevoked": "members of the group with the log partition",
        "load-first-commits": "committed by the group",
        "load-no-members": "members of the group",
        "commit-offsets-after-append": "committed by the group",
    },
    "T02-v2": {"pass-hanging-transaction": "last stable offset"},
    "T10-v2": {"marker-of-any-epoch": "broker 0: written high watermark"},
    "T11-v2": {"answer-before-decision": "answer to a"},
    "T22-v2": {"forget-abort-on-follower": "broker 1: log"},
    "T30-o2": {
        "count-pending-offsets": "committed by the group",
        "count-aborted-offsets": "committed by the group",
    },
    "T31-o2": {"offsets-of-any-member": "answer to x"},
    "T32-o2": {"answer-unstable-offsets": "committed by the group"},
}
#: The results for the log partitions of free runs, by family and whether Kafka kept eligible leaders, run by run.
FreeRuns = Mapping[str, Sequence[Sequence[FreeRun]]]


def compared() -> list[Comparison]:
    """Hold the core against every recorded trace."""
    return [hold(trace, story_of(trace)) for trace in traces_in(TRACES)]


def held_free_runs() -> FreeRuns:
    """Hold the core's controller against every free run."""
    results: dict[str, list[Sequence[FreeRun]]] = {}
    with kept_runs() as runs:
        for run in runs:
            record = read_record(run)
            with_elr = ", eligible leaders" if record.settings["eligible.leader.replicas"] else ""
            results.setdefault(f"{record.family}{with_elr}", []).append(held_run(run))
    return results


def conformance(comparisons: Sequence[Comparison], free_runs: FreeRuns) -> str:
    """Write the page of all comparisons."""
    return page(
        "The core against recorded traces of Kafka",
        "`results/reference/conform/`",
        wrapped(INTRODUCTION.strip()),
        table(["story", "settings", "on", "day", "commit", "outcome", "steps", *Word], map(_row, comparisons)),
        wrapped(OTHERWISE.strip()),
        *_unplayed({compared.story for compared in comparisons}),
        "## Free runs",
        wrapped(FREE_RUNS.strip()),
        table(
            ["family", "runs", "log partitions", "changes", "refusals", "acts", "deviations", "unexplained"],
            _runs(free_runs),
        ),
        "## Planted bugs",
        wrapped(PLANTED.strip()),
        table(
            ["planted bug", "a trace", "traces", f"of {sum(map(len, free_runs.values()))} free runs"],
            _planted(comparisons),
        ),
        "## Known deviations",
        bullets(_deviations()),
    )


def _row(compared: Comparison) -> tuple[str, ...]:
    counts = (str(compared.count(word) or "") for word in Word)
    outcome = "otherwise" if compared.disagreements else "as expected"
    trace = (compared.story, compared.column, compared.system, compared.day, compared.commit)
    return (*trace, outcome, str(len(compared.steps)), *counts)


def _unplayed(played: set[str]) -> Iterator[str]:
    """Name the stories that Kafka can perform in their usual column, and that have no trace here."""
    kafka = ELSEWHERE["kafka"]
    columns = {
        number: next(story.columns[name] for name in USUAL if name in story.columns)
        for number, story in known_stories().items()
        if number not in played
    }
    lacking = [number for number, column in columns.items() if not why_not(known_stories()[number], column, kafka)]
    if lacking:
        yield wrapped(f"{UNPLAYED} {', '.join(lacking)}.")


def _runs(free_runs: FreeRuns) -> Iterator[tuple[str, ...]]:
    for family, runs in free_runs.items():
        held = [each for run in runs for each in run]
        yield (
            family,
            str(len(runs)),
            str(len(held)),
            str(sum(each.changes for each in held)),
            str(sum(each.refusals for each in held) or ""),
            str(sum(each.roles for each in held)),
            str(sum(each.deviations for each in held) or ""),
            str(sum(not each.fits for each in held) or ""),
        )


def _planted(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, str, str, str]]:
    broken = tomllib.loads(BROKEN.read_text(encoding="utf-8"))
    tried = tomllib.loads(SHOWN_BUGS.read_text(encoding="utf-8"))
    shown = {bug: trace for trace, bugs in SHOWN.items() for bug in bugs}
    for bug in {**broken, **shown, **tried}:
        runs, traces = len(broken.get(bug, ())), ""
        if bug in tried:
            traces = f"{len(tried[bug])} of {sum(bug in bugs_for(known_stories()[each.story]) for each in comparisons)}"
        if runs or traces or bug in shown:
            yield f"`{bug}`", shown.get(bug, ""), traces, str(runs or "")


def _deviations() -> Iterator[str]:
    for deviation in known_deviations():
        yield f"{deviation.name}: {deviation.why} ({deviation.source})"
