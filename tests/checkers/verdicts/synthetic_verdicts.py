"""Verdicts of runs as the tests of this folder need them: so many faults that took effect, so many anomalies."""

from __future__ import annotations

from checkers.measures.history_counts import Exercise
from checkers.measures.recovery import Recovery
from checkers.measures.writes_met import FaultExercise
from checkers.verdicts.verdict import Verdict
from nemesis.receipts import Receipt
from tests.checkers.findings import a_finding
from tests.checkers.receipts import a_receipt


def killed(sequence: int, took_effect: bool = True, family: str = "kill", fault: str = "kill") -> Receipt:
    """The receipt of a kill, or of another fault, that is a story by itself and hit a broker of its own."""
    own = {"sequence": sequence, "group": sequence, "targets": [sequence], "story": "leader"}
    return a_receipt(**own, took_effect=took_effect, family=family, fault=fault)


def verdict(
    *, in_fault: int = 40, drained: bool = True, faults: int = 1, fault: str = "kill", **counts: int
) -> Verdict:
    """``counts`` are those of anomalies; of 100 acknowledged writes ``in_fault`` were acknowledged in each fault."""
    named = {name.replace("_", "-"): count for name, count in counts.items()}
    return Verdict(
        history="h",
        valid=not named,
        counts=named,
        anomalies={name: [a_finding(name, key="t-0", value=7)] for name in named},
        exercise=Exercise(attempted=120, acknowledged=100, acknowledged_in_fault=in_fault, drained=drained),
        faults=[killed(sequence, fault=fault) for sequence in range(faults)],
        fault_exercise=[FaultExercise(sequence=sequence, acknowledged=in_fault) for sequence in range(faults)],
        recovery=Recovery(tried=True),
    )
