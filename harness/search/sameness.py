"""What makes the finding of two runs the same, where one is to be a smaller form of the other."""

from __future__ import annotations

from typing import Final

import msgspec

from harness.errors import NamedWronglyError
from harness.search.trial import Trial

#: A log that did not come back: no anomaly of the history, and an outcome all the same.
STALLED: Final = "stalled"
#: The anomaly of a run that broke an invariant.
INVARIANT: Final = "broken-invariant"
#: What is worse stands first; whatever else was found follows as the judgement has it.
_FIRST: Final = ("lost-write", "unseen")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a run must show to be a smaller form of another.

    The same anomaly, on the same side of the promise (``broken`` or permitted), and of lost writes the same ``fate`` of
    their copies. Of a finding's identity (:mod:`checkers.verdicts.identity`) the faults around it are left out, because
    a smaller run has fewer, and the settings do not change. Which write it is, on which log partition, under which
    leader is not part of it, nor how often it is found. An ``invariant`` that is broken first stands for itself.
    """

    anomaly: str = ""
    broken: bool = False
    fate: str = ""
    invariant: str = ""

    def is_in(self, trial: Trial) -> bool:
        """The run shows it."""
        if self.invariant:
            return trial.broken is not None and trial.broken.name == self.invariant
        if self.anomaly == STALLED:
            return bool(trial.judgement.stalled)
        judgement = trial.judgement
        counted = judgement.broken if self.broken else judgement.permitted
        return counted.get(self.anomaly, 0) > 0 and (not self.fate or self.fate in _fates(trial, self.anomaly))

    def in_words(self) -> str:
        """For people."""
        if self.invariant:
            return f"the invariant {self.invariant} is broken"
        if self.anomaly == STALLED:
            return "the log does not come back"
        side = "a broken promise" if self.broken else "permitted"
        return f"{self.anomaly} ({', '.join(filter(None, (self.fate, side)))})"


def finding_of(trial: Trial, anomaly: str = "") -> Finding:
    """The finding of a run: of ``anomaly``, or the worst, a broken promise before what is permitted.

    Raises:
        NamedWronglyError: there is none, or not that one.
    """
    found = list(findings_of(trial))
    if anomaly:
        found = [one for one in found if anomaly in (one.anomaly, one.invariant, one.invariant and INVARIANT)]
    if not found:
        what = f"no {anomaly}" if anomaly else "nothing: no write is lost and no promise is broken"
        raise NamedWronglyError(f"{trial.verdict.history} shows {what}; name a run that shows a finding")
    return found[0]


def findings_of(trial: Trial) -> list[Finding]:
    """Everything that was found in a run, the worst first."""
    judgement = trial.judgement
    found: list[Finding] = []
    for broken, counted in ((True, judgement.broken), (False, judgement.permitted)):
        names = sorted(counted, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
        found += [_finding(trial, name, broken=broken) for name in names]
        if broken and judgement.stalled:
            found.append(Finding(anomaly=STALLED, broken=True))
    return found


def _finding(trial: Trial, name: str, *, broken: bool) -> Finding:
    if name == INVARIANT and trial.broken is not None:
        return Finding(invariant=trial.broken.name)
    return Finding(anomaly=name, broken=broken, fate=min(_fates(trial, name), default=""))


def _fates(trial: Trial, anomaly: str) -> set[str]:
    """What became of the copies, of every listed finding of ``anomaly``; nothing where that is not known."""
    findings = trial.verdict.anomalies.get(anomaly, ())
    return {str(finding["fate"]) for finding in findings if "fate" in finding}
