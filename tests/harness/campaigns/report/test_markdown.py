"""The matrix in Markdown: one row for each choice of settings, and nothing that could break out of its cell."""

from __future__ import annotations

import msgspec

from checkers import SITUATIONS, Cell, Exercise, RunFacts, Verdict, VerdictLine
from checkers.measures.recovery import Recovery
from checkers.measures.writes_met import FaultExercise
from checkers.verdicts.cells import build_cells
from checkers.verdicts.matrix import summarise
from harness.campaigns.report.markdown import as_markdown
from tests.nemesis.receipt_factory import a_receipt
from workloads.settings import Settings


def cell(world: str, acks: int | str, **counts: int) -> Cell:
    verdict = Verdict(
        history="h",
        valid=not counts,
        counts={name.replace("_", "-"): count for name, count in counts.items()},
        exercise=Exercise(attempted=9, acknowledged=4_000, acknowledged_in_fault=900, drained=True),
        faults=[a_receipt(sequence=sequence, group=sequence) for sequence in range(3)],
        fault_exercise=[FaultExercise(sequence=sequence, acknowledged=300) for sequence in range(3)],
        recovery=Recovery(tried=True),
    )
    settings = Settings.from_mapping({"acks": acks}).to_mapping()
    run = RunFacts(cell="c/kill", family="kill", world=world, seed=1, settings=settings)
    (built,) = build_cells([VerdictLine.of(verdict, run)])
    return msgspec.structs.replace(built, label={"acks": acks})


def rows(text: str) -> list[list[str]]:
    return [[word.strip() for word in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_a_row_for_each_choice_of_settings_and_a_column_for_each_world_and_family() -> None:
    cells = [cell("kafka", "all"), cell("kafka", 0, lost_write=7), cell("processes", "all")]
    head, _, strong, weak = rows(as_markdown(summarise(cells), cells))[:4]
    assert head == ["acks", "kafka: kill", "processes: kill"]
    assert strong[0] == "all"
    assert strong[1] == "✓ 0 in 3 faults (≤ 63 % after 3 faults)"
    assert weak == ["0", "▼ 7 of 4,000 (0.18 %)", "not run"]


def test_the_verdict_stands_first_and_worlds_that_agree_are_counted() -> None:
    cells = [cell("kafka", "all"), cell("processes", "all")]
    summary = summarise(cells)
    text = as_markdown(summary, cells)
    assert text.startswith(f"**{summary.sentence}**")
    assert "1 of 1 cells that ran in several worlds have the same outcome in each." in text


def test_worlds_that_differ_are_listed_with_the_reason() -> None:
    cells = [cell("kafka", 0, lost_write=7), cell("processes", 0)]
    last = rows(as_markdown(summarise(cells), cells))[-1]
    assert last[:3] == ["acks=0", "kill", "kafka: permitted loss; processes: held"]
    assert "permitted" in last[3]


def test_what_was_left_to_the_client_is_stated_with_what_was_in_force() -> None:
    settings = Settings(enable_idempotence=True).to_mapping()
    kafka_cell = msgspec.structs.replace(
        cell("kafka", "all"), settings=settings, client_defaults=("enable.idempotence",)
    )
    assert (
        "The plan leaves enable.idempotence to the client. The client's own default was in force: "
        "true with acks=all (kafka)."
    ) in as_markdown(summarise([kafka_cell]), [kafka_cell]).splitlines()


def test_a_name_from_a_file_cannot_end_its_cell_or_begin_a_tag() -> None:
    evil = msgspec.structs.replace(cell("kafka", "all"), label={"acks": "a|b<script>"})
    text = as_markdown(summarise([evil]), [evil])
    assert "a\\|b&lt;script>" in text
    assert "<script" not in text


def test_wedged_clients_and_a_minimum_of_the_plans_own_are_said() -> None:
    kafka_cell = msgspec.structs.replace(cell("kafka", "all"), permitted={"wedged-client": 2}, exercised_min=1)
    text = as_markdown(summarise([kafka_cell]), [kafka_cell])
    assert rows(text)[2][1] == "✓ 0 in 3 faults (≤ 63 % after 3 faults), clients wedged"
    assert "Note: the plan asks for 1 exercised fault of each family and 59 writes at stake" in text
    usual = cell("kafka", "all")
    quiet = as_markdown(summarise([usual]), [usual])
    assert "wedged" not in quiet
    assert "Note:" not in quiet


def test_many_families_of_several_worlds_go_down_and_worlds_across() -> None:
    worlds, families = ("kafka", "processes", "simulated"), [f"family-{n}" for n in range(8)]
    cells = [msgspec.structs.replace(cell(world, "all"), family=family) for world in worlds for family in families]
    head, _, *body = rows(as_markdown(summarise(cells), cells))[:10]
    assert head == ["acks", "faults", *worlds]
    assert [row[:2] for row in body] == [["all", family] for family in families]


def test_a_situation_that_no_cell_met_has_no_column_and_no_definition() -> None:
    met = {"leader_changed_in_flight": 3, "refused_before_append": 0, "read_across_truncation": None}
    text = as_markdown(summarise([]), [msgspec.structs.replace(cell("kafka", "all"), coverage=met)])
    table = next(row for row in rows(text) if row[:3] == ["settings", "faults", "world"])
    assert "leader changed in flight" in table
    assert "read across truncation" in table  # not known is not 0
    assert "refused before append" not in text
    none = msgspec.structs.replace(cell("kafka", "all"), coverage=dict.fromkeys(SITUATIONS, 0))
    assert "Risky situations" not in as_markdown(summarise([]), [none])
