"""Records traces of Apache Kafka again, story by story, and goes on where one fails.

python -m scripts.record_traces DIR [NAME...]

A NAME is that of a trace in `results/reference/conform/` (S01-all-2, S01-all-2-3.9.2); without one all of them are
recorded. A trace is kept when every step was performed: in DIR, or in DIR/unexplained where the core does not show the
same. Each has a line with its result. Needs root.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from harness.ground.errors import HarnessError
from harness.lab.conform import RecordedTrace, Word, hold, performed_elsewhere, story_of, traces_in, write_trace
from harness.runs.stories import Play

TRACES: Final = Path(__file__).parents[1] / "results" / "reference" / "conform"


def named(names: Iterable[str]) -> Iterator[RecordedTrace]:
    """The kept traces with these names, or all where none is given."""
    wanted = {*names}
    kept = {trace.name.removesuffix(".json"): trace for trace in traces_in(TRACES)}
    yield from (trace for name, trace in kept.items() if not wanted or name in wanted)
    if lacking := sorted(wanted - kept.keys()):
        sys.stdout.write(f"no such traces: {', '.join(lacking)}\n")


def record_again(old: RecordedTrace, directory: Path) -> str:
    """Perform the story of a trace on its release, keep the new trace if it is whole, and say how it went."""
    story = story_of(old)
    try:
        trace = performed_elsewhere(story, old.column, "kafka", old.release)
        failed = [step.text for step in trace.steps if step.play is Play.FAILED]
        if failed:
            return f"not kept: it failed at {failed[0]}"
        compared = hold(trace, story)
    except HarnessError as error:
        return f"not kept: {error}"
    write_trace(directory if compared.conforms else directory / "unexplained", trace)
    counts = ", ".join(f"{number} {word}" for word in Word if (number := compared.count(word)))
    return "; ".join([counts, *(compared.disagreements or ["as expected"])])


def main(directory: Path, names: Iterable[str]) -> None:
    """Record them one after the other."""
    for old in named(names):
        begun = time.monotonic()
        result = record_again(old, directory)
        sys.stdout.write(f"{old.name.removesuffix('.json')}: {result} ({time.monotonic() - begun:.0f} s)\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
