"""Modules that were compiled are used where they were built from this source, all of them or none."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from harness.compiled import INDEX, INSIDE, VARIABLE, built_from, form_of_modules, use_compiled
from harness.machine.versions import versions
from scripts import compile as compiling
from scripts.compiled_wheel import CompiledWheel

FILES = {"harness.fake_of_a_test": "harness/fake.py", "fake_of_a_test": "fake.py"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source, and in the place of what was built from it modules that only say where they are."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delenv(VARIABLE)
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "one.py").write_text("a = 1\n")
    built_in(tmp_path / "build" / "compiled", built_from(tmp_path))
    return tmp_path


def built_in(directory: Path, source: str) -> None:
    for file in FILES.values():
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).write_text(f"place = {str(directory)!r}\n")
    (directory / INDEX).write_text(json.dumps({"built_from": source, "files": FILES}))


def imported() -> list[Any]:
    """The modules of the index, imported for this test only."""
    try:
        return [importlib.import_module(name) for name in FILES]
    finally:
        for name in FILES:
            sys.modules.pop(name, None)


def test_what_was_built_from_this_source_is_imported(root: Path) -> None:
    assert use_compiled(root)
    assert {module.place for module in imported()} == {str(root / "build" / "compiled")}


def test_an_installed_wheel_has_them_inside_of_the_package(root: Path) -> None:
    source = built_from(root)
    (root / "build" / "compiled" / INDEX).unlink()
    inside = root / "harness" / INSIDE
    built_in(inside, source)
    assert built_from(root) == source, "what was compiled is no part of what it was compiled from"
    assert use_compiled(root)
    assert {module.place for module in imported()} == {str(inside)}


@pytest.mark.parametrize("content", ["a = 2\n", None])
def test_after_a_change_of_any_module_the_source_is_used(root: Path, content: str | None) -> None:
    if content is None:
        (root / "harness" / "two.py").touch()
    else:
        (root / "harness" / "one.py").write_text(content)
    assert not use_compiled(root)


def test_a_build_that_did_not_end_is_not_used(root: Path) -> None:
    (root / "build" / "compiled" / INDEX).write_text('{"built_from": ')
    assert not use_compiled(root)


def test_compiled_modules_are_not_mixed_with_the_source_of_others(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fake_of_a_test", sys)
    assert not use_compiled(root)


def test_the_source_can_be_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "no")
    assert not use_compiled(root)


def test_figures_say_which_modules_were_in_use() -> None:
    assert form_of_modules() == versions()["modules"] == "source", "tests use the source"


def test_a_wheel_has_what_was_built_from_its_source_and_says_for_whom(root: Path) -> None:
    data: dict[str, Any] = {"force_include": {}}
    hook = CompiledWheel(str(root), {}, None, None, str(root / "dist"), "wheel")  # type: ignore[arg-type]
    hook.initialize("standard", data)
    assert set(data["force_include"].values()) == {f"harness/{INSIDE}/{file}" for file in (INDEX, *FILES.values())}
    assert (data["pure_python"], data["infer_tag"]) == (False, True)
    (root / "harness" / "one.py").write_text("a = 2\n")
    with pytest.raises(ValueError, match="run make compiled again"):
        hook.initialize("standard", data)


def test_a_class_that_stays_interpreted_takes_its_subclasses_with_it(tmp_path: Path) -> None:
    classes = "class A(msgspec.Struct):\n    a: int\n\n\nclass B(A, frozen=True):\n    b: int\n\n\nclass C:\n    pass\n"
    (file := tmp_path / "one.py").write_text(f"import msgspec\n\n\n{classes}")
    compiling._change(file, "one")
    kept, moved = (ast.parse(each.read_text()).body for each in (file, tmp_path / "one_interpreted.py"))
    assert [node.name for node in kept if isinstance(node, ast.ClassDef)] == ["C"]
    assert [node.name for node in moved if isinstance(node, ast.ClassDef)] == ["A", "B"]


def test_what_is_compiled_does_without_mypy(tmp_path: Path) -> None:
    (file := tmp_path / "one.py").write_text("import sys\n\n\nclass Two:\n    pass\n")
    compiling._change(file, "one")
    body = ast.parse(file.read_text()).body
    assert not [node for node in body if isinstance(node, ast.ImportFrom)]
    (tried,) = [node for node in body if isinstance(node, ast.Try)]
    assert [ast.unparse(node) for node in tried.body] == ["from mypy_extensions import mypyc_attr"]
    assert [ast.unparse(handler.type) for handler in tried.handlers if handler.type] == ["ImportError"]


def test_a_build_is_for_one_python(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = built_from(root)
    monkeypatch.setattr("harness.compiled.EXTENSION_SUFFIXES", [".cpython-399-none.so", *EXTENSION_SUFFIXES])
    assert built_from(root) != before
