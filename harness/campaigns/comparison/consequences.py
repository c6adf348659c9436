"""Findings that are one defect with another: they are about the same writes, and no run shows them without it.

A write that is lost was not seen, was skipped by polls, and tears its transaction. Of two findings that only meet in a
run nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from checkers import VALUE_FIELDS, Finding, VerdictLine, named_findings
from harness.campaigns.comparison.findings import shown_by


def consequences_of(heads: Sequence[str], lines: Iterable[VerdictLine]) -> Mapping[str, Sequence[str]]:
    """The ``heads`` that follow from no earlier head, with what follows from each, in runs of some cells."""
    runs: dict[str, set[str]] = {}
    alike: dict[str, set[str]] = {head: set() for head in heads}
    for line in lines:
        shown = {finding.identity for finding in shown_by(line) if not finding.permitted}
        for identity in shown:
            runs.setdefault(identity, set()).add(line.history)
        if shown & alike.keys():
            writes = _writes(line)
            for head in shown & alike.keys():
                alike[head] |= {
                    other for other in shown if not writes.get(head, set()).isdisjoint(writes.get(other, ()))
                }
    followed: dict[str, Sequence[str]] = {}
    told: set[str] = set()
    for head in heads:
        if head not in told:
            told.add(head)
            followed[head] = sorted(other for other in alike[head] - told if runs[other] <= runs[head])
            told.update(followed[head])
    return followed


def _writes(line: VerdictLine) -> dict[str, set[tuple[object, object]]]:
    """By identity, the writes that the listed findings of a run name, each with its log partition."""
    writes: dict[str, set[tuple[object, object]]] = {}
    for identity, finding in named_findings(line):
        writes.setdefault(identity, set()).update((finding.key, value) for value in _values(finding))
    return writes


def _values(finding: Finding) -> Iterator[object]:
    for name, content in msgspec.structs.asdict(finding).items():
        if name in VALUE_FIELDS:
            each: Any = content if isinstance(content, list) else [content]
            yield from (value for value in each if isinstance(value, int | str))
