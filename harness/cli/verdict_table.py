"""Prints verdicts for `ackproof check`: the worst first, in groups where a line each would be too many."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rich.markup import escape

from checkers import Cell, Outcome, Place, counted, wedged_clients
from harness.campaigns.campaign import JudgedHistory, is_unreadable
from harness.cli.matrix_table import show_silent
from harness.cli.terminal import Terminal

#: Rows of a table, which is a screen; the rest is in verdicts.jsonl.
ROWS_MAX: Final = 40
#: Alarming histories that are named one by one before a table of groups.
ALARMING_MAX: Final = 10
NOTHING: Final = "nothing"


def show_judged(
    terminal: Terminal, judged: Sequence[JudgedHistory], cells: Sequence[Cell], written: Sequence[str]
) -> None:
    """Print tables of what was found, then one line with the verdict and the files in which it is ``written``.

    Files that could not be read have nothing to put in a table: a sentence each says why. More histories than fit on a
    screen are grouped by the directory they lie in, which for runs is their cell, after those that are alarming.
    Of ``cells`` whose silence proves nothing a sentence each says what they lack: their runs may be held, each alone.
    """
    worst = sorted(judged, key=_badness)
    _show_unreadable(terminal, [history for history in worst if is_unreadable(history)])
    _show_readable(terminal, [history for history in worst if not is_unreadable(history)])
    for client in wedged_clients(history.line.anomalies for history in judged):
        terminal.say(client.sentence())
    show_silent(terminal, cells)
    outcomes = Counter(history.outcome for history in worst)
    what = counted(len(judged), "history", "histories")
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
    terminal.say(f"{what}: {counts}" + (f"; see {' '.join(written)}" if written else ""))


def _show_unreadable(terminal: Terminal, judged: Sequence[JudgedHistory]) -> None:
    for history in judged[:ROWS_MAX]:
        reason = history.line.why_unknown or "it cannot be read"
        terminal.say(reason if str(history.path) in reason else f"{history.path}: {reason}")
    if judged:
        _show_rest(terminal, len(judged) - ROWS_MAX, "files")


def _show_readable(terminal: Terminal, worst: Sequence[JudgedHistory]) -> None:
    below = _common_directory(worst)
    if len(worst) > ROWS_MAX:
        alarming = [history for history in worst if history.outcome.alarming]
        if alarming:
            _show_each(terminal, alarming, below, ALARMING_MAX)
        _show_groups(terminal, worst, below)
    elif worst:
        _show_each(terminal, worst, below, ROWS_MAX)


def _badness(history: JudgedHistory) -> tuple[int, int, int, str]:
    counts = history.line.counts
    return (
        history.outcome.badness,
        -counts.get("lost-write", 0),
        -sum(counts.values()),
        str(history.path),
    )


def _show_each(terminal: Terminal, judged: Sequence[JudgedHistory], below: str, most: int) -> None:
    headers = ["outcome", "acknowledged", "in faults", "found", _heading("history", below)]
    terminal.table(headers, [_row(history, below) for history in judged[:most]])
    _show_rest(terminal, len(judged) - most, "histories")


def _row(history: JudgedHistory, below: str) -> tuple[str, ...]:
    exercise = history.line.exercise
    return (
        _coloured(history.outcome, history.outcome),
        str(exercise.acknowledged),
        str(exercise.acknowledged_in_fault),
        escape(_findings_words(history)),
        escape(_inside(history.path, below)),
    )


def _findings_words(history: JudgedHistory) -> str:
    """Say what was found, or why it could not be judged; and of an irregular history that it may be the cause."""
    reason, listed, irregular = _reason(history), _listed(history.line.counts), history.line.irregular
    if not listed or (reason and history.outcome.proves_nothing):
        return reason or NOTHING
    return f"{listed}; but {irregular}: correct the history first" if irregular else listed


def _show_groups(terminal: Terminal, judged: Sequence[JudgedHistory], below: str) -> None:
    groups: dict[Place, list[JudgedHistory]] = {}
    for history in judged:
        groups.setdefault(history.path.parent, []).append(history)
    headers = ["outcomes", "acknowledged", "in faults", "found", _heading("histories", below)]
    terminal.table(headers, [_group_row(path, ones, below) for path, ones in list(groups.items())[:ROWS_MAX]])
    _show_rest(terminal, len(groups) - ROWS_MAX, "groups")


def _group_row(path: Place, judged: Sequence[JudgedHistory], below: str) -> tuple[str, ...]:
    outcomes = Counter(history.outcome for history in judged)
    counts: Counter[str] = Counter()
    for history in judged:
        counts.update(history.line.counts)
    return (
        "\n".join(_coloured(outcome, f"{count} {outcome}") for outcome, count in outcomes.items()),
        str(sum(history.line.exercise.acknowledged for history in judged)),
        str(sum(history.line.exercise.acknowledged_in_fault for history in judged)),
        escape(_listed(counts) or _commonest(_reason(history) for history in judged)),
        escape(_inside(path, below)),
    )


def _show_rest(terminal: Terminal, count: int, what: str) -> None:
    if count > 0:
        terminal.say(f"... and {count} more {what}, none of them worse")
    terminal.say("")


def _listed(counts: Counter[str] | dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _reason(history: JudgedHistory) -> str:
    """Say why it could not be judged, without the path, which has a column of its own."""
    return (history.line.why_unknown or "").replace(f"{history.path}/", "")


def _commonest(reasons: Iterable[str]) -> str:
    given = Counter(reason for reason in reasons if reason)
    return given.most_common(1)[0][0] if given else NOTHING


def _coloured(outcome: Outcome, text: str) -> str:
    return f"[{outcome.colour}]{text}[/]"


def _common_directory(judged: Iterable[JudgedHistory]) -> str:
    """Find what all paths begin with; the last part of each stays, so that a row is about what differs."""
    parents = [str(history.path.parent) for history in judged]
    try:
        return os.path.commonpath(parents)
    except ValueError:  # absolute and relative ones
        return ""


def _heading(what: str, below: str) -> str:
    return escape(f"{what} below {below}") if below not in {"", "."} else what


def _inside(path: Place, below: str) -> str:
    return str(path.relative_to(below)) if below and path.is_relative_to(below) else str(path)
