"""A judged release as Markdown, and as one HTML page in the style of the report that needs no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, get_args

from checkers import counted
from harness.campaigns.report import page_style
from harness.ground.templates import templates_of
from harness.records.release_file import ReleaseEntry, ReleaseRecord, Result

RESULTS: Final[tuple[Result, ...]] = get_args(Result)
#: The head of each list, in the order of the pages.
HEADS: Final = {
    "new": "New: shows, and no page says so of this release",
    "still": "Still: shows",
    "gone": "Gone: shows on {against}, and not here",
    "not shown": "Not shown",
    "not observed": "Not observed",
}


def headline(record: ReleaseRecord) -> str:
    """The answer in one sentence."""
    counts = Counter(entry.result for entry in record.entries)
    told = ", ".join(f"{counts[result]} {result}" for result in RESULTS)
    worse = sum(entry.worse for entry in record.entries)
    harms = f"{counted(worse, 'harm') if worse else 'no harm'} that {record.against} does not have"
    patched = f" with the classes of {record.patch}" if record.patch else ""
    return f"Apache Kafka {record.release}{patched} against {record.against}: {harms}; {told}"


def tries_of(entry: ReleaseEntry, record: ReleaseRecord) -> str:
    """The tries in which it showed, on each release."""
    here = f"{entry.shown} of {counted(entry.tries, 'try', 'tries')}"
    compared = f"; {record.against}: {entry.against_shown} of {entry.against_tries}" if entry.against_tries else ""
    return here + compared


def as_page(record: ReleaseRecord) -> str:
    """The page. Everything in it is escaped."""
    template = templates_of("harness.lab.releases").get_template("release.html.j2")
    parts = [(head.format(against=record.against), record.of(result)) for result, head in _heads()]
    return template.render(
        record=record,
        headline=headline(record),
        parts=[(head, entries) for head, entries in parts if entries],
        tries=tries_of,
        code=record.exit_code,
        style=page_style(),
    )


def as_markdown(record: ReleaseRecord) -> str:
    """The same in Markdown, for the page of a job and for a repository."""
    return "\n".join(_markdown(record)) + "\n"


def _markdown(record: ReleaseRecord) -> Iterator[str]:
    yield f"# Apache Kafka {record.release}"
    yield ""
    yield f"{headline(record)}."
    yield ""
    yield f"Played on {record.day} by ackproof {record.by} in {record.minutes:.0f} minutes; {record.machine}."
    for result, head in _heads():
        entries = record.of(result)
        if entries:
            yield ""
            yield f"## {head.format(against=record.against)}"
            yield ""
            yield from _reasons(entries) if result == "not observed" else _table(entries, record)


def _table(entries: Sequence[ReleaseEntry], record: ReleaseRecord) -> Iterator[str]:
    yield "| what | harm | shown | command |"
    yield "|---|---|---|---|"
    for entry in entries:
        worse = ", **worse**" if entry.worse else ""
        yield f"| {entry.name}{worse} | {_cell(entry.title)} | {tries_of(entry, record)} | `{entry.command}` |"


def _reasons(entries: Sequence[ReleaseEntry]) -> Iterator[str]:
    """A line for each reason; a command where only one entry has it."""
    alike: dict[str, list[ReleaseEntry]] = {}
    for entry in entries:
        alike.setdefault(entry.why, []).append(entry)
    for why, those in alike.items():
        command = f" (`{those[0].command}`)" if len(those) == 1 else ""
        yield f"- {', '.join(entry.name for entry in those)}: {' '.join(why.split())}{command}"


def _heads() -> Iterator[tuple[Result, str]]:
    for result in RESULTS:
        yield result, HEADS[result]


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
