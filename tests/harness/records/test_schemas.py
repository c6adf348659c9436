"""The published schemas are those of the types, and what the program wrote is valid by them."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from checkers import build_matrix
from harness.cli.app import exit_code_of
from harness.records.schemas import SCHEMAS, schema_of, schema_text
from tests.harness.campaigns.comparison.conftest import STRONG, run_lines

ROOT = Path(__file__).parents[3]
_ASSESSMENT, _CLIENTS, MATRIX, RELEASE, VERDICTS = SCHEMAS
#: The distance of the lines that are looked at in long files.
STEP = 10
RECORDED = sorted(file.parent for file in (ROOT / "results" / "reference").glob("*/matrix.json"))


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema_of(name))
    return jsonschema.Draft202012Validator(schema_of(name))


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_schema_is_that_of_the_type(name: str) -> None:
    published = (ROOT / "docs" / "schemas" / name).read_bytes()
    assert published == schema_text(name), "make it again: ackproof schema --out docs/schemas"


@pytest.mark.parametrize("directory", RECORDED, ids=lambda directory: directory.name)
def test_recorded_files_are_valid(directory: Path) -> None:
    validator(MATRIX).validate(json.loads((directory / "matrix.json").read_bytes()))
    (file,) = directory.glob("verdicts.jsonl*")
    content = file.read_bytes()
    lines = (lzma.decompress(content) if file.suffix == ".xz" else content).splitlines()
    for line in lines[::STEP]:
        validator(VERDICTS).validate(json.loads(line))


def written(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


def test_what_is_written_now_is_valid_and_something_else_is_not() -> None:
    lines = list(run_lines(STRONG, losing=1, runs=2))
    matrix = written(build_matrix(lines))
    validator(MATRIX).validate(matrix)
    for line in lines:
        validator(VERDICTS).validate(written(line))
    with pytest.raises(jsonschema.ValidationError):
        validator(MATRIX).validate(matrix | {"cells": [{"cell": "c"}]})
    with pytest.raises(jsonschema.ValidationError):
        validator(VERDICTS).validate(written(lines[0]) | {"valid": "maybe"})


def test_the_command_prints_and_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["schema", "matrix"]) == 0
    assert capsys.readouterr().out == schema_text(MATRIX).decode()
    assert exit_code_of(["schema", "--out", str(tmp_path / "new")]) == 0
    assert {file.name: file.read_bytes() for file in (tmp_path / "new").iterdir()} == {
        name: schema_text(name) for name in SCHEMAS
    }
    assert exit_code_of(["schema"]) == 64
