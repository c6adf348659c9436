"""The documentation names what exists; its commands exist, and those that it shows with their output print that."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli.app import cli

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PACKAGES = ("bench", "harness", "checkers", "nemesis", "workloads")
#: From the root, in text and in pictures.
PATH = re.compile(rf"(?<![\w/.-])(?:{'|'.join((*PACKAGES, 'tests', 'docs', 'plans'))})/[\w/.*-]*\w")
DOCUMENTS = [ROOT / "README.md", ROOT / "results" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _named(document: Path) -> list[str]:
    return sorted(set(PATH.findall(document.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("document", "path"),
    [(document.relative_to(ROOT).as_posix(), path) for document in DOCUMENTS for path in _named(document)],
)
def test_what_the_documentation_names_is_there(document: str, path: str) -> None:
    assert list(ROOT.glob(path)), f"{document} names {path}"


#: The name of a module, alone or with folders above it, whatever folder it is seen from.
MODULE = re.compile(r"(?<![\w/.-])([\w./-]*\w\.py)\b")
#: Modules of other projects, of a reader, and of a commit that a decision names.
ELSEWHERE = {
    "kafka/coordinator/base.py",
    "kafka/producer/sender.py",
    "kafka/producer/transaction_manager.py",
    "reassign_partitions_test.py",
    "play.py",
    "scripts/guided-search.py",
}


@pytest.mark.parametrize("document", [document.relative_to(ROOT).as_posix() for document in DOCUMENTS])
def test_modules_that_a_document_names_without_their_package_are_there(document: str) -> None:
    names = set(MODULE.findall((ROOT / document).read_text(encoding="utf-8"))) - ELSEWHERE
    roots = (*PACKAGES, "docs", "scripts", "tests")
    assert [
        name
        for name in sorted(names)
        if not any((ROOT / name).exists() or any((ROOT / root).rglob(name)) for root in roots)
    ] == []


#: A link's target: a file, a heading of it, or both; not of another site, and not the address of a page.
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINKED = [*DOCUMENTS, ROOT / "CHANGELOG.md", *sorted((ROOT / "results" / "reference").rglob("README.md"))]


def _anchors(document: Path) -> set[str]:
    """The names of a document's headings, as GitHub makes them."""
    headings = HEADING.findall(FENCED.sub("", document.read_text(encoding="utf-8")))
    plain = (re.sub(r"\]\([^)]*\)", "", heading) for heading in headings)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("document", [document.relative_to(ROOT).as_posix() for document in LINKED])
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(document: str) -> None:
    source = ROOT / document
    broken = []
    for name, anchor in LINK.findall(FENCED.sub("", source.read_text(encoding="utf-8"))):
        target = source.parent / name if name else source
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            broken.append(f"{name}#{anchor}")
    assert not broken, f"{document} has links that lead nowhere: {', '.join(broken)}"


INDEX = ROOT / "docs" / "index.md"
#: The questions of the index, each with words that its answer has.
ANSWERS = {
    "Does it apply to me?": (
        "`min.insync.replicas`",
        "| 3.3 to 3.9 | yes | yes |",
        "librdkafka 2.16.0",
        "Not looked for",
    ),
    "What does it say of my settings?": ("ackproof campaign mine.toml", "permitted loss", "No promise was broken"),
    "What does this verdict mean?": ("| `permitted loss` | ▼ |", "exit code", "never counted as lost"),
    "How do I break my own cluster safely?": ("It kills nothing", "ackproof init existing", "ackproof heal"),
    "How does it run in CI, every night?": ("ackproof init ci", "nightly", "exit code"),
    "Why should I believe it?": ("planted bugs must be found", "no receipt, no claim"),
    "How do I add something?": ("## A fault", "## An anomaly", "## A measure", "## A workload"),
}


def _linked_from(document: Path, text: str) -> set[Path]:
    names = (name for name, _ in LINK.findall(FENCED.sub("", text)) if name)
    targets = ((document.parent / name).resolve() for name in names)
    return {target for target in targets if target.suffix == ".md" and target.exists()}


@pytest.mark.parametrize("question", ANSWERS)
def test_the_index_answers_each_question_in_two_clicks(question: str) -> None:
    (row,) = [line for line in INDEX.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {question} |")]
    first = _linked_from(INDEX, row)
    second = {page for document in first for page in _linked_from(document, document.read_text(encoding="utf-8"))}
    text = "\n".join(page.read_text(encoding="utf-8") for page in first | second)
    assert [words for words in ANSWERS[question] if words not in text] == []


def test_the_index_has_these_questions() -> None:
    rows = re.findall(r"^\| (.*\?) \|", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == list(ANSWERS)


def test_every_page_is_two_clicks_from_the_index() -> None:
    first = _linked_from(INDEX, INDEX.read_text(encoding="utf-8"))
    second = {page for document in first for page in _linked_from(document, document.read_text(encoding="utf-8"))}
    decisions = set((ROOT / "docs" / "decisions").glob("*.md"))  # the index links their folder
    pages = set((ROOT / "docs").rglob("*.md")) - decisions - {INDEX}
    assert pages - first - second == set()


@pytest.mark.parametrize(
    "room",
    sorted(
        file.parent.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).glob("*/__init__.py")
    ),
)
def test_the_architecture_names_every_room(room: str) -> None:
    assert f"`{room}/" in ARCHITECTURE.read_text(encoding="utf-8")


#: A command in a block of code, its prompt and what begins it left out.
COMMAND = re.compile(r"^(?:\$ )?(?:sudo )?(?:\.venv/bin/)?(?:\w+=\S+ )*ackproof ([a-z].*)$")
#: A command with what it prints on standard output.
SHOWN = re.compile(r"^```console\n\$ ackproof (.*)\n((?:.*\n)*?)```$", re.MULTILINE)


def commands(document: Path) -> Iterator[str]:
    for block in re.findall(r"^```.*?\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        yield from (match[1] for line in block.splitlines() if (match := COMMAND.match(line.strip())))


@pytest.mark.parametrize(
    ("document", "line"),
    [(document.relative_to(ROOT).as_posix(), line) for document in DOCUMENTS for line in commands(document)],
)
def test_a_command_in_the_documentation_exists_with_its_options(document: str, line: str) -> None:
    command: click.Command = cli
    context = click.Context(cli)
    words = shlex.split(line.partition("   ")[0].removesuffix("\\"), comments=True)
    words = words[: words.index("--")] if "--" in words else words  # what follows is a user's own command
    while isinstance(command, click.Group) and words:
        subcommand = command.get_command(context, words.pop(0))
        assert subcommand is not None, f"{document}: ackproof {line}"
        command = subcommand
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help"
    }
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, f"{document}: {line}"


def test_the_plan_in_the_readme_is_the_one_of_the_start() -> None:
    """A newcomer's first plan of his own. tests/test_starts.py runs it in `make check`, and wants what is shown."""
    (block,) = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    start = (ROOT / "docs" / "start" / "your-settings.md").read_text(encoding="utf-8")
    assert f"```toml\n# mine.toml\n{block}```" in start
    assert "$ ackproof campaign mine.toml\n" in start


@pytest.mark.parametrize(
    ("command", "output"),
    SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8")),
    ids=lambda text: text.partition(" ")[0],
)
def test_output_in_the_readme_is_that_of_its_command(tmp_path: Path, command: str, output: str) -> None:
    """Without its numbers: a rule that is mended may change how many writes a schedule loses, and where a line ends.

    Output that ends with dots is the beginning of what is printed.
    """
    for folder in ("plans", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    program = [sys.executable, "-c", "from harness.cli import main; main()", *shlex.split(command)]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=1_000, check=False)
    assert done.returncode == 0, done.stderr
    shown, printed = (re.sub(r"\d+", "#", text).split() for text in (output, done.stdout))
    assert len(shown) > 10
    assert (printed[: len(shown) - 1], "...") == (shown[:-1], shown[-1]) if shown[-1] == "..." else printed == shown
