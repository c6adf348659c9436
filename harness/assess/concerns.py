"""Makes the risks of an assessment, and says on what condition a change can be made."""

from __future__ import annotations

from typing import Final

from checkers import counted
from harness.records.assessment_file import Concern

#: Replicas that outlive one broker without a setting that has to give up writes or copies.
COPIES: Final = 3


def risk(name: str, sentence: str, change: str, price: str) -> Concern:
    """A risk: something that no story shows, with its reason, the change that removes it, and its price."""
    return Concern(kind="risk", name=name, sentence=sentence, change=change, price=price)


def brokers_needed(brokers: int | None, least: int = COPIES) -> str:
    """The condition of ``least`` replicas, in words behind a change; empty where as many brokers are known."""
    if brokers is None:
        return f", on {counted(least, 'broker')}"
    if brokers >= least:
        return ""
    verb = "is" if brokers == 1 else "are"
    return f", after {counted(least - brokers, 'broker')} more: {brokers} {verb} known, and each replica needs its own"
