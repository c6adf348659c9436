"""Does a run again from its ``run.json`` and says whether the same thing happens.

In virtual time a seed is the whole run, so the history must come out byte for byte and every finding with it; anything
else means that the program changed or that chance leaked in. In real time a seed is only the plan: the same faults are
asked for at the same moments, and the findings may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from checkers import REPLICAS_FILE, Finding, Scratch, ScratchKind, Verdict, check_one, counted
from harness.ground.choices import Choices
from harness.ground.errors import HarnessError, NamedWronglyError, ResultsError
from harness.ground.machine.translated_errors import translated_errors
from harness.plan import TRACED_WRITES_MAX, planned_writes
from harness.records.files import CLUSTER_FILE, HISTORY, files_of
from harness.records.run_record import RunRecord, read_record
from harness.runs.run import choices_of, perform_run, recover_observations, write_choices
from workloads.history import CLUSTERED

Part = TypeVar("Part")

#: Differences that are shown; the first one is what a reader follows.
DIFFERENCES_MAX: Final = 5


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A run done again. ``differences`` are sentences, empty where everything came out the same.

    ``recorded`` and ``again`` are the verdicts on the recorded and on the new history; both are judged now, so that a
    newer checker is not mistaken for a difference of the runs.
    """

    record: RunRecord
    recorded: Verdict
    again: Verdict
    same_bytes: bool
    differences: tuple[str, ...]

    @property
    def identical(self) -> bool:
        """True where history and findings are the same."""
        return self.same_bytes and not self.differences


def replay(directory: Path, scratch: Path) -> Replayed:
    """Do the simulated run in ``directory`` again in the new directory ``scratch``, with tracing.

    Where the history came out the same, ``directory`` is given the trace (``cluster.jsonl``), which the account of the
    run is read from, and every draw of chance (``choices.json``); where it did not, it is left as it was.

    Raises:
        ResultsError: ``directory`` is no run, has no history, or is of a world that does not repeat itself.
    """
    record = read_record(directory)
    if not record.world.virtual_time:
        raise NamedWronglyError(
            f"{directory} ran in the {record.world.name} world, which does not repeat itself; name a run of the "
            "simulated world"
        )
    choices = choices_of(record.spec())
    same = _done_again(directory, scratch, choices)
    if same:
        _keep_trace(directory, scratch)
        write_choices(directory, choices)
    recorded, again = _verdict(directory), _verdict(scratch)
    return Replayed(
        record=record, recorded=recorded, again=again, same_bytes=same, differences=differences(recorded, again)
    )


def _done_again(directory: Path, scratch: Path, choices: Choices | None = None) -> bool:
    """Do the simulated run in ``directory`` again in ``scratch``; the answer says that its history is the same."""
    ended = perform_run(read_record(directory).spec(), scratch, observe=True, choices=choices)
    if ended.status != "completed":
        raise ResultsError(f"{directory} cannot be performed again: {ended.reason}")
    with files_of(directory):
        return (directory / HISTORY / CLUSTERED).read_bytes() == (scratch / HISTORY / CLUSTERED).read_bytes()


def _keep_trace(directory: Path, scratch: Path) -> None:
    """Give ``directory`` the new ``cluster.jsonl``, and what its replicas held if it lacks that.

    Only of a run whose history came out the same: else it would be evidence of something that did not happen there.
    """
    with files_of(directory):
        (directory / CLUSTER_FILE).write_bytes((scratch / CLUSTER_FILE).read_bytes())
        if not (directory / REPLICAS_FILE).is_file():
            (directory / REPLICAS_FILE).write_bytes((scratch / REPLICAS_FILE).read_bytes())


def trace_missing(directory: Path) -> None:
    """Leave ``cluster.jsonl`` in a run that has none: a simulated one is done again, a real one's nodes have it.

    Raises:
        ResultsError: a simulated run has more writes than are traced unasked; or it did not come out the same: what was
            seen now says nothing about the recorded one.
    """
    if (directory / CLUSTER_FILE).is_file():
        return
    record = read_record(directory)
    if not record.world.virtual_time:
        recover_observations(record, directory)
        return
    if (writes := planned_writes(record.workload)) > TRACED_WRITES_MAX and not record.story:
        raise ResultsError(
            f"only a replay shows that, and {writes} writes are too many for one that was not asked for (the most is "
            f"{TRACED_WRITES_MAX}); run: ackproof replay {directory}"
        )
    with Scratch(ScratchKind.REPLAY) as scratch:
        if not _done_again(directory, again := scratch.path / "again"):
            raise ResultsError(
                f"{directory} does not repeat itself with this version of ackproof; use the version that performed it"
            )
        _keep_trace(directory, again)


def rerun(
    record: RunRecord, recorded: Path, directory: Path, choices: Choices | None = None
) -> tuple[Verdict, Verdict]:
    """Do a run once more, below ``directory``; the verdicts on the old history and on the new one.

    It is one of real processes, or is to follow other ``choices`` than its seed gives; one in virtual time is observed.

    Raises:
        HarnessError: it could not be done; or it asks for a choice that was not recorded.
    """
    target = directory / record.spec().directory()
    ended = perform_run(record.spec(), target, observe=True, choices=choices)
    if ended.status != "completed":
        raise HarnessError(f"{recorded} could not be run again: {ended.reason}")
    return _verdict(recorded), _verdict(target)


def _verdict(directory: Path) -> Verdict:
    with translated_errors():
        return check_one(directory / HISTORY)


def differences(recorded: Verdict, again: Verdict) -> tuple[str, ...]:
    """Name the differences of two verdicts, finding by finding, in sentences."""
    sentences = [
        f"{name}: {counted(before or 0, 'finding')} recorded, {now or 'none'} now"
        for name, before, now in _unequal(recorded.counts, again.counts)
    ]
    if recorded.valid != again.valid:
        sentences.append(f"valid: {recorded.valid} recorded, {again.valid} now")
    for anomaly, first, second in _unequal(recorded.anomalies, again.anomalies):
        pairs = zip(first or [], second or [], strict=False)
        sentences += [f"{anomaly}: {_shown(a)} recorded, {_shown(b)} now" for a, b in pairs if a != b]
    return tuple(sentences[:DIFFERENCES_MAX])


def _unequal(first: Mapping[str, Part], second: Mapping[str, Part]) -> list[tuple[str, Part | None, Part | None]]:
    names = dict.fromkeys([*first, *second])
    return [(name, first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)]


def _shown(finding: Finding) -> str:
    return msgspec.json.encode(finding).decode()
