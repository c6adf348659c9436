"""JUnit's XML, as Jenkins, GitLab, GitHub's actions and Buildkite read it: a test case for each cell of a matrix.

What each outcome is for a job: a promise that is broken, a log that does not come back and a history that is not valid
**fail**; what could not be judged is an **error**, because a person must look; what was not exercised is **skipped**;
the others pass, and say in their output what was seen. So does a cell with accepted findings only.
A campaign that is not finished, or whose runs failed, is an
error of its own: the cells that are there may all be green.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from xml.etree import ElementTree as Xml

from checkers import Cell, Outcome, acceptance_words, settings_words
from harness.campaigns.report.accounts import Account
from harness.records.campaign_record import CampaignRecord

#: The element inside a case; None: the case passes.
ELEMENTS: Final[dict[Outcome, str | None]] = {
    Outcome.BROKEN_PROMISE: "failure",
    Outcome.NOT_VALID: "failure",
    Outcome.STALLED: "failure",
    Outcome.UNKNOWN: "error",
    Outcome.NOT_EXERCISED: "skipped",
    Outcome.PERMITTED_LOSS: None,
    Outcome.HELD: None,
}
#: Characters that XML 1.0 cannot hold, even escaped: control characters, halves of surrogate pairs, two that are no
#: characters.
_IMPOSSIBLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Case(NamedTuple):
    """One test case: the suite and class that tools group it by, its name there, its outcome, one line and all text.

    One whose findings are all ``accepted`` passes, and says so in its output.
    """

    suite: str
    group: str
    name: str
    outcome: Outcome
    line: str
    text: str
    accepted: bool = False

    @property
    def element(self) -> str | None:
        """The element inside it; None: it passes."""
        return None if self.accepted else ELEMENTS[self.outcome]


def as_junit(cases: Sequence[Case], unfinished: str = "") -> bytes:
    """An XML document with a suite for each of the cases' suites; ``unfinished`` says what a campaign lacks, or ""."""
    root = Xml.Element("testsuites", {"name": "ackproof", **_counts(cases, unfinished=bool(unfinished))})
    for name in dict.fromkeys(case.suite for case in cases):
        own = [case for case in cases if case.suite == name]
        suite = Xml.SubElement(root, "testsuite", {"name": _possible(name), **_counts(own)})
        for case in own:
            _append(suite, case)
    if unfinished:
        suite = Xml.SubElement(root, "testsuite", {"name": "campaign", **_counts((), unfinished=True)})
        element = Xml.SubElement(suite, "testcase", classname="ackproof", name="the campaign is complete")
        Xml.SubElement(element, "error", type="not complete", message=_possible(unfinished))
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def cases_of(cells: Iterable[Cell], accounts: Iterable[Account] = ()) -> list[Case]:
    """A case for each cell; those with an account have its sentences and the command that runs it again."""
    by_cell = {(account.cell.world, account.cell.cell): account for account in accounts}
    return [
        Case(
            suite=cell.world,
            group=f"{cell.world}.{cell.family}",
            name=cell.cell,
            outcome=cell.outcome,
            line=_line(cell),
            accepted=cell.excused,
            text="\n".join(_account(cell, by_cell.get((cell.world, cell.cell)))),
        )
        for cell in cells
    ]


def _line(cell: Cell) -> str:
    return "; ".join(filter(None, (cell.note, acceptance_words(cell))))


def unfinished_words(campaign: CampaignRecord | None, cells: Sequence[Cell]) -> str:
    """Say what the campaign of ``campaign.json`` lacks: runs that failed in the harness, or were not done; or ""."""
    if campaign is None:
        return ""
    planned = sum(world.planned for world in campaign.worlds.values())
    missing = planned - sum(cell.runs for cell in cells)
    lacks = [f"{missing} of {planned} runs are not there"] if missing > 0 else []
    if (without := campaign.cells - len(cells)) > 0:
        lacks.append(f"{without} of {campaign.cells} cells have no run")
    return "; ".join([*lacks, *(f"{run} failed: {reason}" for run, reason in campaign.failures.items())])


def _account(cell: Cell, account: Account | None) -> Iterable[str]:
    yield f"{settings_words(cell.label)} under {cell.family} in the world {cell.world}: {cell.outcome}, {_line(cell)}."
    yield cell.promise
    if account is not None:
        yield from ("", account.title, *(f"{number}. {words}" for number, words in enumerate(account.sentences, 1)))
        yield from ("", f"Why: {account.why}", "", f"Run it again: {account.command}", f"Files: {account.run}")
    elif cell.witness is not None:
        yield f"Shown by {cell.witness.run}: {cell.witness.anomaly}."


def _append(suite: Xml.Element, case: Case) -> None:
    case_element = Xml.SubElement(suite, "testcase", classname=_possible(case.group), name=_possible(case.name))
    element = case.element
    inside = Xml.SubElement(case_element, element or "system-out")
    if element:
        inside.set("message", _possible(case.line))
    if element in {"failure", "error"}:
        inside.set("type", case.outcome)
    inside.text = _possible(case.text)


def _counts(cases: Sequence[Case], *, unfinished: bool = False) -> dict[str, str]:
    elements = [case.element for case in cases] + ["error"] * unfinished
    named = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": str(len(elements)), **{name: str(elements.count(element)) for name, element in named.items()}}


def _possible(text: str) -> str:
    """Keep what XML can hold; the library escapes what would be markup."""
    return _IMPOSSIBLE.sub("\ufffd", text)
