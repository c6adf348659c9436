"""The page of claims: what five documents say of replication, whether it holds, and what shows it.

The claims are in ``claims.toml`` beside this module. What a story is said to show is looked up in what its file
expects, which a test holds against the story itself; a claim that the file does not bear out is an error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

import msgspec

from harness.plan import ExpectedOutcomes, plans_here, read_plan
from harness.runs.stories import Sign, Story, chosen_columns, known_stories
from scripts.reference.markdown import bullets, page, wrapped
from workloads import Settings, SettingsError, spelled

FILE: Final = Path(__file__).with_name("claims.toml")
ROOT: Final = Path(__file__).parents[2]
INTRODUCTION: Final = """
What five documents say of replication, in words of our own, and what shows it here. A story shows what its file expects
in some of its [columns](stories.md#columns); "kept" means acknowledged and not lost. A plan shows what its
`[[expected]]` says of its cells, `figures` among them.
"""


class ClaimOfDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One claim: what is said, what shows it, and whether it holds; ``but`` says what is otherwise."""

    says: str
    shown: list[str]
    holds: Literal["yes", "no", "in part", "not known"] = "yes"
    but: str = ""


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document, and its claims in their order."""

    name: str
    claim: list[ClaimOfDocument]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    document: list[Document]


class WrongClaimError(Exception):
    """A claim is shown by nothing, or by something that does not bear it out."""


def documents() -> list[Document]:
    """The documents in their order."""
    return msgspec.toml.decode(FILE.read_bytes(), type=_File).document


def claims() -> str:
    """The page of claims, document by document."""
    return page(
        "Claims",
        "`scripts/reference/claims.toml`",
        wrapped(INTRODUCTION.strip()),
        *(block for document in documents() for block in (f"## {document.name}", bullets(map(_told, document.claim)))),
    )


_HOLDS: Final = {"yes": "holds", "no": "does not hold", "in part": "holds in part", "not known": "is not known"}


def _told(claim: ClaimOfDocument) -> str:
    said = " ".join(filter(None, (claim.says, f"It **{_HOLDS[claim.holds]}**.", claim.but)))
    return " ".join((said, *(f"{evidence_of(entry)}." for entry in claim.shown)))


def evidence_of(entry: str) -> str:
    """An entry of ``shown`` as a sentence without its full stop.

    Raises:
        WrongClaimError: there is no such thing, or it does not say so.
    """
    kind, _, rest = entry.partition(" ")
    match kind:
        case "plan":
            return _of_plan(rest)
        case "test":
            return _of_test(rest)
        case "finding":
            (file,) = (ROOT / "docs" / "findings").glob(f"{rest}-*.md")
            return f"[Finding {rest}](../findings/{file.name})"
        case "refused":
            return _refused(rest)
    number, _, clauses = entry.partition(": ")
    story = known_stories().get(number)
    if story is None:
        raise WrongClaimError(f"{entry}: no such story")
    for clause in clauses.split("; "):
        _check(story, clause)
    return f"[{number}](stories.md#{number.lower()}): {clauses}"


_OF_RECORD: Final = re.compile(r"(?P<record>\w+) (?P<how>lost|kept|not acknowledged|skipped) in (?P<columns>.+)")
_OF_SIGN: Final = re.compile(r"(?P<absent>no )?(?P<sign>[a-z ]+) in (?P<columns>.+)")


def _check(story: Story, clause: str) -> None:
    """Look up whether the story's file expects what the clause says, in each of its columns."""
    of_record, of_sign = _OF_RECORD.fullmatch(clause), _OF_SIGN.fullmatch(clause)
    named = of_record or of_sign
    if named is None:
        raise WrongClaimError(f"{story.number}: not understood: {clause}")
    for column in chosen_columns(named["columns"].split(), story.columns):
        expected = story.expected(column)
        if of_record:
            record = of_record["record"]
            holds = {
                "lost": record in expected.lost,
                "kept": record in expected.acknowledged - expected.lost,
                "not acknowledged": record in {*story.records} - expected.acknowledged,
                "skipped": record in expected.skipped,
            }[of_record["how"]]
        else:
            holds = (Sign(named["sign"]) in expected.signs) is not bool(named["absent"])
        if not holds:
            raise WrongClaimError(f"{story.number}: its file does not expect in {column}: {clause}")


def _of_plan(text: str) -> str:
    """The expectation of a plan of its cells, or, behind a colon, of those with some settings."""
    name, _, chosen = text.partition(": ")
    if name not in plans_here():
        raise WrongClaimError(f"no plan is called {name}")
    wanted = [pair.split("=", 1) for pair in chosen.split()]
    told = [
        _expectation(entry)
        for entry in read_plan(plans_here()[name]).expected
        if all(value in _values(entry.settings.get(setting)).split("/") for setting, value in wanted)
    ]
    if not told:
        raise WrongClaimError(f"plans/{name}.toml expects nothing of {chosen or 'its cells'}")
    return f"`plans/{name}.toml`: {'; '.join(told)}"


def _expectation(entry: ExpectedOutcomes) -> str:
    where = ", ".join(f"{key}={_values(value)}" for key, value in entry.settings.items())
    world = f"{entry.world} " if entry.world else ""
    figures = "".join(f", {name} {least:,g} to {most:,g}" for name, (least, most) in entry.figures.items())
    return f"{world}{f'{where}: ' if where else ''}{' or '.join(entry.outcomes)}{figures}"


def _values(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return "/".join("never" if each == 2**63 - 1 else spelled(each) for each in values)


def _of_test(name: str) -> str:
    file, _, function = name.partition("::")
    if f"def {function}(" not in (ROOT / file).read_text(encoding="utf-8"):
        raise WrongClaimError(f"{file} has no test {function}")
    return f"A test: {function.removeprefix('test_').replace('_', ' ')}"


def _refused(text: str) -> str:
    """Settings that no cluster can have."""
    settings: dict[str, object] = {}
    for name, value in (pair.split("=", 1) for pair in text.split()):
        settings[name] = int(value) if value.isdigit() else value
    try:
        Settings.from_mapping(settings)
    except SettingsError:
        return f"Refused: `{text}`"
    raise WrongClaimError(f"{text} is not refused")
