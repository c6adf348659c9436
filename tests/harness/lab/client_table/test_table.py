"""The table: its outcomes, exit codes, pages, and its file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import msgspec
import pytest

from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.lab.client_table import CELLS, as_markdown, as_page, client_table, headline
from harness.plan import ClientProgram
from harness.records.client_table_file import CellOutcome, CellResult, ClientTable, TableCell, TableClient

PYTHON_PROGRAM = (sys.executable, str(Path(__file__).parents[4] / "examples/clients/python/client.py"))


def table_of(*outcomes: CellOutcome, failed: str = "") -> ClientTable:
    cells = [TableCell(name=f"cell-{number}", happens="it", expects="that") for number in range(len(outcomes))]
    results = [
        CellResult(client="a<b 1", cell=cell.name, outcome=outcome, breaches=(("lost", "record 0 is lost"),))
        for cell, outcome in zip(cells, outcomes, strict=True)
    ]
    client = TableClient(name="a<b 1", started_by="./a", failed=failed)
    return ClientTable(by="1", clients=(client,), cells=tuple(cells), results=tuple(results))


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (table_of(CellOutcome.KEPT, CellOutcome.PERMITTED, CellOutcome.NOT_SUPPORTED), 0),
        (table_of(CellOutcome.KEPT, CellOutcome.NOT_MET), 2),
        (table_of(CellOutcome.KEPT, failed="it died"), 2),
        (table_of(CellOutcome.NOT_MET, CellOutcome.BROKEN), 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst_cell(table: ClientTable, code: int) -> None:
    assert table.exit_code == code


def test_pages_name_what_is_broken_and_what_failed_and_escape_names() -> None:
    table = table_of(CellOutcome.KEPT, CellOutcome.BROKEN, failed="it died")
    assert "| cell-1 | **broken** |" in as_markdown(table)
    assert "* a<b 1: broken: record 0 is lost" in as_markdown(table)
    page = as_page(table)
    assert "<strong>broken</strong>" in page
    assert "a&lt;b 1 failed: it died" in page
    assert "a<b" not in page
    assert headline(table) == "1 client in 2 situations: 1 kept, 1 broken"


def test_the_file_is_read_as_it_was_written() -> None:
    table = table_of(CellOutcome.PERMITTED)
    assert msgspec.json.decode(msgspec.json.encode(table), type=ClientTable) == table


def test_every_cell_says_what_happens_and_by_whose_word_it_must_hold() -> None:
    assert len(CELLS) >= 50
    for cell in CELLS.values():
        assert cell.happens[0].islower()
        assert "a" < cell.expects[0].lower() < "z"
        assert ":" in cell.expects
        assert cell.about not in cell.permits


def test_a_client_that_is_neither_a_name_nor_a_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["clients", "--client", "kafka-pyton", "--out", "none"]) == 64
    assert 'did you mean "kafka-python"' in capsys.readouterr().err


@pytest.mark.system
def test_a_program_and_a_built_in_client_have_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--client", "confluent-kafka", "--client", shlex.join(PYTHON_PROGRAM), "--cell", "refused-one-in-flight"]
    assert exit_code_of(["clients", *chosen, "--out", str(tmp_path)]) == 1
    assert "refused-one-in-flight: reordered: records 0 to 3" in capsys.readouterr().out
    table = msgspec.json.decode((tmp_path / "clients.json").read_bytes(), type=ClientTable)
    assert [result.outcome for result in table.results] == [CellOutcome.BROKEN, CellOutcome.KEPT]
    assert table.results[0].history[0] == "Produce 0 to broker 0 is refused with NOT_ENOUGH_REPLICAS"
    assert "refused-one-in-flight" in (tmp_path / "clients.html").read_text()


@pytest.mark.system
def test_a_client_that_does_not_start_is_told_and_the_others_are_played(tmp_path: Path) -> None:

    cells = {"refused-first-batch": CELLS["refused-first-batch"]}
    dead = ClientProgram(command=(sys.executable, "-c", "raise SystemExit"))
    *_, table = client_table([dead, "confluent-kafka"], cells, tmp_path, Progress())
    assert [bool(client.failed) for client in table.clients] == [True, False]
    assert [result.outcome for result in table.results] == [CellOutcome.KEPT]
