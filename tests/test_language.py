"""The language of the source: first lines of docstrings and descriptions, words to avoid, names.

``python -m tests.test_language harness/runs/stories`` lists what is against the rules in some files or folders.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PACKAGES: Final = ("bench", "checkers", "harness", "nemesis", "workloads", "scripts")
#: Plans, scripts of stories and tables whose words people read.
TOML: Final = ("plans", "harness")
#: Other files whose comments and messages people read.
SCRIPTS: Final = ("Makefile", ".ci/run", "ci/*", "scripts/*.sh", "harness/**/*.sh", "harness/**/*.java")

NOUN_CLAUSE: Final = re.compile(
    r"(What|How|Whether|Of|Who|Whom|Whose|Which|Where|When|Why|That|Those)\b"
    r"|(At|By|For|From|In|On|To|With) (what|how|whom|whose|which)\b"
)
#: Before the description of a name.
COMMENT: Final = "#: "
SEE_ONLY: Final = re.compile(r"See :\w+:`[^`]*`\.?$")
FIRST_LINE_WORDS_MIN: Final = 3
#: Each with what is written instead.
TURNS: Final = {
    r"\bso many\b": "the number, or 'as many as'",
    r"\banew\b": "again",
    r"\bin vain\b": "without effect; say what failed",
    r"\bwhoever\b": "the subject",
    r"\b(?:is|are|was|were) (?-i:none)\b": "does not exist, or 'is not a ...'",
    r"\bnobody\b": "the subject that does not: 'no client', 'no broker'",
    r"\bsomebody\b": "the subject",
    r"\bbesides\b": "also, or 'and'",
    r"\bof which\b": "a second sentence",
    r"\bstands? (?:in|there|here|under|beside|for|above|below)\b": "is written, is listed, means",
    r"\bbut for\b": "except, apart from",
    r"\bc[ao]mes? of\b": "the result, the outcome",
    r"\bat hand\b": "the place, or 'installed'",
    r"\bas of (?:now|yet)\b": "now, yet",
    r"\bthus\b": "so",
    r"\bhence\b": "so",
}
#: Any of them; most texts have none.
ANY_TURN: Final = re.compile("|".join(TURNS), re.IGNORECASE)
#: States of scripts, which are words of their language.
STATES: Final = re.compile(r"\b(?:nobody|somebody) leads\b")
#: Names of variables and functions that say nothing of what these hold or give.
EMPTY_NAMES: Final = frozenset({"one", "found", "place", "at", "known", "there"})
#: The places between the words of a name.
_WORDS: Final = re.compile(r"_|(?<=[a-z])(?=[A-Z])")
#: Names that two classes share, with the reason why neither has another one.
SHARED_CLASS_NAMES: Final = {
    "Log": "the columns that checkers read, and the log of a replica: each is the first noun of its package",
    "MoveLeader": "the fault, and the request to the controller that it is",
}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
#: Nodes that may give a name to something.
Binding = (
    ast.Name
    | ast.Attribute
    | ast.arg
    | ast.MatchAs
    | ast.MatchStar
    | ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.ClassDef
)


def violations(path: Path) -> Iterator[str]:
    """Lines "file:line: what is wrong" of one module."""
    yield from first_lines(path)
    yield from empty_names(path)
    name = _relative(path)
    text, nodes = _read(path)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (f"{name}:{node.lineno}: {wrong}" for wrong in turns(node.value))
        if isinstance(node, Binding):
            words = _WORDS.sub(" ", _bound_name(node)).lower()
            yield from (f"{name}:{node.lineno}: {wrong}" for wrong in turns(words))
    for number, line in enumerate(text.splitlines(), 1):
        _, mark, comment = line.replace(COMMENT, "# ").partition("# ")
        if mark and '"' not in comment:
            yield from (f"{name}:{number}: {wrong}" for wrong in turns(comment))


def first_lines(path: Path) -> Iterator[str]:
    """The same of docstrings and of descriptions of names, by their first lines."""
    name = _relative(path)
    text, nodes = _read(path)
    for node in nodes:
        if isinstance(node, Documented):
            yield from (
                f"{name}:{getattr(node, 'lineno', 1)}: {wrong}" for wrong in _docstring(ast.get_docstring(node))
            )
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from (f"{name}:{node.lineno}: {wrong}" for wrong in _noun_clause(node.value.value))
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if (described := line.lstrip().removeprefix(COMMENT)) != line.lstrip() and COMMENT not in before:
            yield from (f"{name}:{number}: {wrong}" for wrong in _noun_clause(described))
        before = line


def empty_names(path: Path) -> Iterator[str]:
    """The same of names that say nothing of what they hold or give."""
    for node in _read(path)[1]:
        if isinstance(node, Binding) and (bound := _bound_name(node)) in EMPTY_NAMES:
            yield f"{_relative(path)}:{node.lineno}: the name {bound!r} does not say what it holds"


@lru_cache(1)
def _read(path: Path) -> tuple[str, list[ast.AST]]:
    """The text of a module, and the nodes of its tree."""
    text = path.read_text(encoding="utf-8")
    return text, [*ast.walk(ast.parse(text))]


def _relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def turns(text: str) -> Iterator[str]:
    """Words and turns to avoid that occur in ``text``."""
    if not ANY_TURN.search(text):
        return
    for pattern, better in TURNS.items():
        for match in re.finditer(pattern, STATES.sub("", text), re.IGNORECASE):
            yield f"{match[0]!r}: rather {better}"


def _docstring(text: str | None) -> Iterator[str]:
    if not text:
        return
    first = " ".join(text.partition("\n\n")[0].split())
    if SEE_ONLY.match(first):
        yield f"only refers to another docstring (use @override): {first[:60]!r}"
    elif len(first.split()) < FIRST_LINE_WORDS_MIN:
        yield f"says too little: {first!r}"


def _noun_clause(text: str) -> Iterator[str]:
    first = " ".join(text.partition("\n\n")[0].split())
    if NOUN_CLAUSE.match(first) and not first.endswith("?"):
        yield f"begins with a noun clause: {first[:60]!r}"


def _bound_name(node: Binding) -> str:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name.lstrip("_")
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name.lstrip("_")
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return name.lstrip("_")
        case _:
            return ""


def modules(folders: Iterable[str]) -> list[Path]:
    """Python files of some files and folders of the project, in order."""
    paths = [ROOT / folder for folder in folders]
    return sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))


def test_the_source_speaks_plainly() -> None:
    wrong = [line for module in modules(PACKAGES) for line in violations(module)]
    assert not wrong, "\n".join(wrong)


def test_first_lines_and_names_of_tests_speak_plainly() -> None:
    wrong = [line for module in modules(["tests"]) for line in (*first_lines(module), *empty_names(module))]
    assert not wrong, "\n".join(wrong)


#: The name of a public class of a module, also of a class inside of another.
CLASS_NAME = re.compile(r"^ *class ([A-Za-z]\w*)[(:]", re.MULTILINE)


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, set[str]] = {}
    for module in modules(PACKAGES):
        for name in CLASS_NAME.findall(module.read_text(encoding="utf-8")):
            homes.setdefault(name, set()).add(str(module.relative_to(ROOT)))
    shared = {name: sorted(files) for name, files in homes.items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in SHARED_CLASS_NAMES} == {}
    assert SHARED_CLASS_NAMES.keys() <= shared.keys(), "an exception that nothing needs"


def test_plans_and_tables_speak_plainly() -> None:
    files = [file for folder in TOML for file in sorted((ROOT / folder).rglob("*.toml"))]
    assert [(file.name, wrong) for file in files for wrong in turns(file.read_text(encoding="utf-8"))] == []


def test_scripts_speak_plainly() -> None:
    files = [file for pattern in SCRIPTS for file in sorted(ROOT.glob(pattern)) if file.is_file()]
    assert len(files) > len(SCRIPTS)
    assert [(file.name, wrong) for file in files for wrong in turns(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ('"""What a reader sees."""', "noun clause"),
        ('size = 1\n"""How much fits."""', "noun clause"),
        ('"""At which offsets a record is."""', "noun clause"),
        ('"""Those that completed."""', "noun clause"),
        ('text = "what comes of it"', "comes of"),
        ("#: Where it ends.\nend = 1\n", "noun clause"),
        ('"""See :meth:`Base.close`."""', "refers to another"),
        ('"""Cut."""', "too little"),
        ('text = "4 is none"', "is none"),
        ("# done anew\n", "anew"),
        ("#: One of so many.\n", "so many"),
        ("found = 1", "'found'"),
        ("def f(at): pass", "'at'"),
        ("self._found = 1", "'found'"),
        ("def known(): pass", "'known'"),
        ("match 1:\n    case int() as one: pass", "'one'"),
        ("match []:\n    case [*found]: pass", "'found'"),
        ("done_anew = 1", "anew"),
        ("class NobodyElse: pass", "nobody"),
    ],
)
def test_each_rule_catches_its_example(tmp_path: Path, source: str, part: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(source, encoding="utf-8")
    (wrong,) = violations(module)
    assert part in wrong


def test_plain_source_passes(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Reads a plan and names its first error."""\npath = "partition 4 does not exist"\n', encoding="utf-8"
    )
    assert not list(violations(module))


if __name__ == "__main__":
    listed = [line for module in modules(sys.argv[1:] or PACKAGES) for line in violations(module)]
    sys.stdout.write("".join(f"{line}\n" for line in listed) + f"{len(listed)} in all\n")
