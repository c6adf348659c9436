"""Findings are structs, one for each kind of anomaly, and their JSON is read whoever wrote it."""

from __future__ import annotations

from typing import get_type_hints

import msgspec
import pytest

from checkers.anomalies import ANOMALIES, Finding, Findings
from checkers.anomalies.anomaly import VALUE_FIELDS
from checkers.anomalies.lost_write import LostWrite
from checkers.verdicts.judgement import VerdictLine
from checkers.verdicts.witness import Witness
from tests.checkers.findings import a_finding
from workloads.history import Origin

LOST = {"key": "t-0", "value": 7, "index": None, "max-read-index": 9, "writer": {"op_pos": 3}, "max-read": None}


@pytest.mark.parametrize("name", list(ANOMALIES))
def test_a_verdict_decodes_each_anomaly_as_the_struct_of_its_module(name: str) -> None:
    finding = a_finding(name, key="t-0")
    line = VerdictLine(history="h", valid=False, anomalies={name: [finding]})
    (again,) = msgspec.json.decode(msgspec.json.encode(line), type=VerdictLine).anomalies[name]
    assert type(again) is ANOMALIES[name].finding
    assert again == finding


def test_keys_and_anomalies_of_another_version_are_passed_over() -> None:
    anomalies = {"lost-write": [LOST | {"later": {"a": 1}}], "of-a-later-version": [{"key": "t-0"}]}
    text = msgspec.json.encode({"history": "h", "valid": False, "anomalies": anomalies})
    line = msgspec.json.decode(text, type=VerdictLine)
    assert [finding.value for finding in line.findings(LostWrite)] == [7]
    assert msgspec.to_builtins(line.anomalies) == {"lost-write": [LOST]}


def test_a_witness_is_the_struct_of_its_anomaly_and_only_its_key_where_that_is_not_known() -> None:
    finding = msgspec.Raw(msgspec.json.format(msgspec.json.encode(LOST), indent=1))
    shown = Witness("runs/a", 1, "lost-write", finding).shown
    assert isinstance(shown, LostWrite)
    assert Witness("runs/a", 1, "of-a-later-version", finding).shown == Finding(key="t-0")


def test_fields_that_hold_values_exist() -> None:
    kinds = {anomaly.finding for anomaly in ANOMALIES.values()}
    parts = [kind for hints in map(get_type_hints, kinds) for kind in hints.values()]
    steps = [part.__args__[0] for part in parts if getattr(part, "__origin__", None) is list]
    structs = [*kinds, *(step for step in steps if hasattr(step, "__struct_fields__"))]
    assert {field for struct in structs for field in struct.__struct_fields__} >= VALUE_FIELDS


@pytest.mark.parametrize(
    ("fields", "written"),
    [({"value": -2}, ["a"]), ({"values": [-2, -3]}, ["a", "b"]), ({"messages": [-3]}, ["b"]), ({}, [])],
)
def test_values_are_told_as_the_maker_of_the_history_wrote_them(fields: dict[str, object], written: list[str]) -> None:
    kinds = {"value": "phantom-read", "values": "reordered", "messages": "unseen"}
    anomaly = next((kinds[name] for name in fields), "empty-transaction-graph")
    assert a_finding(anomaly, **fields).told(Origin(values=["a", "b"])).written == written


def test_the_table_of_findings_is_that_of_the_anomalies() -> None:
    assert get_type_hints(Findings).keys() == ANOMALIES.keys()
