"""``explanation.json`` of a run: how a finding came about, and the step after which it could not be avoided."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from harness.records.files import read_json, write_json

EXPLANATION_FILE: Final = "explanation.json"


class StepBack(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of a run to which it was taken back, right after it, and continued with other draws of chance.

    ``what`` happened there, in words. Of ``futures`` continuations with the faults that were still to come,
    ``as_planned`` showed the finding; of as many in which every fault ended then and none followed, ``if_healed``.
    """

    time_us: int
    what: str
    futures: int
    as_planned: int
    if_healed: int


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """An account of how a finding came about.

    ``finding`` in words; ``sentences`` are the narrative, from the acknowledgement to the log as it is now. ``steps``
    are in order of time. From ``no_return_us`` on, a moment of ``steps``, every continuation showed it even where the
    faults ended; ``avoidable_us`` is the last moment at which one did not, None if every one did. Both are None
    if the finding could be avoided even after the last step. ``twin`` is the simulated run that was continued in place
    of a real one; its clock is that of ``steps``.
    """

    finding: str
    sentences: tuple[str, ...]
    steps: tuple[StepBack, ...] = ()
    avoidable_us: int | None = None
    no_return_us: int | None = None
    twin: str = ""

    @property
    def no_return(self) -> StepBack | None:
        """The step from which on it could not be avoided."""
        return next((step for step in self.steps if step.time_us == self.no_return_us), None)


def write_explanation(run: Path, explanation: Explanation) -> None:
    """Write the file of the run in the directory ``run``.

    Raises:
        ResultsError: it cannot be written.
    """
    write_json(run / EXPLANATION_FILE, explanation)


def read_explanation(run: Path) -> Explanation | None:
    """The explanation of the run in the directory ``run``; None before ``ackproof explain`` wrote one.

    Raises:
        ResultsError: the file cannot be read.
    """
    if not (run / EXPLANATION_FILE).is_file():
        return None
    return read_json(run / EXPLANATION_FILE, Explanation, f"make it again with: ackproof explain {run}")
