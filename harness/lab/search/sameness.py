"""Decides whether a smaller run shows the same finding as the run that it was made from.

:mod:`checkers.verdicts.identity` names findings so that campaigns can count them; here only two runs are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from checkers import Judgement, LostWrite, Verdict
from harness.ground.errors import NamedWronglyError
from harness.lab.search.judged_run import JudgedRun

#: A log that did not come back: no anomaly of the history, and an outcome all the same.
STALLED: Final = "stalled"
#: The anomaly of a replica that never came back into the ISR, though all was healed.
OUT_OF_SYNC: Final = "out-of-sync"
#: The anomaly of a run that broke an invariant.
INVARIANT: Final = "broken-invariant"
#: The worse anomalies first; all others follow in the order of the judgement.
_FIRST: Final = ("lost-write", "unseen")


class FindingToKeep(msgspec.Struct, frozen=True, kw_only=True):
    """The finding that a run must show to be a smaller form of another.

    The same anomaly, on the same side of the promise (``broken`` or permitted), and of lost writes the same ``fate`` of
    their copies. Of a finding's identity (:mod:`checkers.verdicts.identity`) the faults around it are left out, because
    a smaller run has fewer, and the settings do not change. Which write it is, on which log partition, under which
    leader is not part of it, nor how often it is found. Of a broken ``invariant`` only its name counts.
    """

    anomaly: str = ""
    broken: bool = False
    fate: str = ""
    invariant: str = ""

    def is_in(self, run: JudgedRun) -> bool:
        """The run shows it."""
        if self.invariant:
            return run.broken is not None and run.broken.name == self.invariant
        if self.anomaly == STALLED:
            return bool(run.judgement.stalled)
        judgement = run.judgement
        counted = judgement.broken if self.broken else judgement.permitted
        return counted.get(self.anomaly, 0) > 0 and (not self.fate or self.fate in _fates(run.verdict, self.anomaly))

    def in_words(self) -> str:
        """The finding for people."""
        if self.invariant:
            return f"the invariant {self.invariant} is broken"
        if self.anomaly == STALLED:
            return "the log does not come back"
        if self.anomaly == OUT_OF_SYNC:
            return "a replica does not come back into the ISR"
        side = "a broken promise" if self.broken else "permitted"
        return f"{self.anomaly} ({', '.join(filter(None, (self.fate, side)))})"


def finding_of(run: JudgedRun, anomaly: str = "") -> FindingToKeep:
    """The finding of a run in memory, see :func:`worst_of`.

    Raises:
        NamedWronglyError: as there.
    """
    invariant = run.broken.name if run.broken else ""
    return worst_of(run.verdict.history, run.verdict, run.judgement, anomaly, invariant)


def worst_of(
    run: str,
    verdict: Verdict,
    judgement: Judgement,
    anomaly: str = "",
    invariant: str = "",
) -> FindingToKeep:
    """The finding that the ``run`` shows of ``anomaly``, or the worst: a broken promise before what is permitted.

    ``invariant`` is the one that it broke first, if any.

    Raises:
        NamedWronglyError: it shows nothing, or not that.
    """
    findings = list(_findings(verdict, judgement, invariant))
    if anomaly:
        findings = [
            finding
            for finding in findings
            if anomaly in (finding.anomaly, finding.invariant, finding.invariant and INVARIANT)
        ]
    if not findings:
        what = f"no {anomaly}" if anomaly else "nothing: no write is lost and no promise is broken"
        raise NamedWronglyError(f"{run} shows {what}; name a run that shows a finding")
    return findings[0]


def _findings(verdict: Verdict, judgement: Judgement, invariant: str) -> Iterator[FindingToKeep]:
    """Everything that was found in a run, the worst first."""
    for broken, counted in ((True, judgement.broken), (False, judgement.permitted)):
        for name in sorted(counted, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST)):
            if name == INVARIANT and invariant:
                yield FindingToKeep(invariant=invariant)
            else:
                yield FindingToKeep(anomaly=name, broken=broken, fate=min(_fates(verdict, name), default=""))
        if broken and judgement.stalled:
            yield FindingToKeep(anomaly=STALLED, broken=True)


def _fates(verdict: Verdict, anomaly: str) -> set[str]:
    """The fates of the copies in the listed findings of ``anomaly``, as far as they are known."""
    findings = verdict.anomalies.get(anomaly, ())
    return {finding.fate for finding in findings if isinstance(finding, LostWrite) and finding.fate}
