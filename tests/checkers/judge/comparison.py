"""The verdict of the checkers on one history in the terms of the slow judge: the places of each anomaly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from checkers.verdicts.verdict import Verdict
from tests.checkers.judge.verdict import RULES

Place = tuple[Any, ...]
Finding = dict[str, Any]


def _of_offset(finding: Finding) -> Place:
    return finding["key"], finding["offset"]


def _of_key(finding: Finding) -> Place:
    return finding["key"], finding["record-key"]


def _of_group(finding: Finding) -> Place:
    return finding["group"], finding["key"], finding["offset"]


def _of_step(finding: Finding) -> Place:
    return finding["key"], finding["values"][-1]


def _of_partition(finding: Finding) -> Place:
    return (finding["key"],)


#: By anomaly, the place of a finding; of all others it is the log partition and the value.
PLACES: Final[dict[str, Callable[[Finding], Place]]] = {
    **dict.fromkeys(("inconsistent-offsets", "corrupt-read"), _of_offset),
    **dict.fromkeys(("returned-key", "divergent-state"), _of_key),
    **dict.fromkeys(("hanging-transaction", "poll-skip", "int-poll-skip", "int-send-skip"), _of_partition),
    **dict.fromkeys(("nonmonotonic-poll", "int-nonmonotonic-poll", "reordered"), _of_step),
    **dict.fromkeys(("nonmonotonic-send", "int-nonmonotonic-send"), _of_step),
    **dict.fromkeys(("group-skip", "group-went-back", "returned-group", "two-owners", "unfenced-instance"), _of_group),
    **dict.fromkeys(("missing-effect", "aborted-commit", "unstable-offset"), _of_group),
    "precommitted-read": lambda f: (f["key"], f["op"]["op_pos"]),
    "doubled-effect": lambda f: (f["source"], f["offset"]),
    **dict.fromkeys(("unexplained-output", "stalled-application"), _of_offset),
    "crash-loop": lambda f: (f["key"], f["instance"]),
    "stale-generation": lambda f: (f["group"], f["key"], f["op"]["op_pos"]),
}


def checked(verdict: Verdict) -> dict[str, set[Place]]:
    """The places that a verdict names, of the anomalies that the judge knows."""
    said: dict[str, set[Place]] = {}
    for name in verdict.anomalies.keys() & RULES.keys():
        findings = [msgspec.to_builtins(finding) for finding in verdict.anomalies[name]]
        if name in ("unseen", "expired-write"):
            said[name] = {(finding["key"], value) for finding in findings for value in finding["messages"]}
        else:
            said[name] = {PLACES.get(name, lambda f: (f["key"], f["value"]))(finding) for finding in findings}
    return said
