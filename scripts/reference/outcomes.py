"""The page of outcomes: their words in files, on a terminal and on the page, and the exit codes."""

from __future__ import annotations

from typing import Final

from checkers import Outcome
from harness.campaigns.report.outcomes import STYLES, UNPROMISED
from harness.cli.app import EXIT_INTERRUPTED
from harness.ground.errors import EXIT_BROKEN, EXIT_HARNESS, EXIT_HELD, EXIT_NOT_REACHABLE, EXIT_PLAN, EXIT_UNKNOWN
from scripts.reference.markdown import page, table, wrapped

INTRODUCTION: Final = """
A cell of the matrix has one outcome, and so has each run of it. Files, the terminal and the page use the same word. The
exit code of a command is 1 if any outcome asks for 1, else 2 if any asks for 2, else 0. A reader that goes away, such
as `head`, changes no exit code.
"""
EXIT_CODES: Final = {
    EXIT_HELD: "nothing is broken",
    EXIT_BROKEN: "a promise was broken, or a log stalled",
    EXIT_UNKNOWN: "it could not be judged, or too little was put to the test",
    EXIT_PLAN: "the plan or the command is wrong; nothing was started",
    EXIT_NOT_REACHABLE: "Apache Kafka cannot be fetched from here, or no server answers `assess`",
    EXIT_HARNESS: "the harness itself failed; nothing is claimed about the log",
    EXIT_INTERRUPTED: "interrupted by Ctrl-C or SIGTERM",
}


def outcomes() -> str:
    """Every outcome with its sign, its meaning and its exit code, then every exit code."""
    rows = [(f"`{outcome}`", style.sign, style.meaning, str(outcome.exit_code)) for outcome, style in STYLES.items()]
    not_valid = Outcome.NOT_VALID
    return page(
        "Outcomes",
        "`checkers/verdicts/outcome.py` and `harness/campaigns/report/outcomes.py`",
        wrapped(INTRODUCTION.strip()),
        table(["outcome", "sign", "meaning", "exit code"], rows),
        wrapped(
            f"A `{Outcome.HELD}` cell has the sign {UNPROMISED.sign} where nothing was promised: "
            f"{UNPROMISED.meaning.partition(':')[0]}. A history of another tool has no settings, so no promise; an "
            f"anomaly makes it `{not_valid}`, with the exit code {not_valid.exit_code}."
        ),
        "## Exit codes",
        table(["exit code", "meaning"], [(str(code), meaning) for code, meaning in sorted(EXIT_CODES.items())]),
    )
