"""Findings of campaigns by identity."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from checkers import build_matrix
from checkers.measures.recovery import Recovery
from harness.campaigns.comparison import Results, read_results, results_of, shown_by
from harness.ground.errors import NamedWronglyError, ResultsError
from harness.records.files import MATRIX_FILE, write_json
from tests.harness.campaigns.comparison.conftest import STRONG, WEAK, night, run_lines, write_campaign

KEY = "simulated/c/kill"


def only(results: Results) -> str:
    (identity,) = results.findings or {}
    return identity


def test_a_finding_is_counted_by_cell_and_shown_by_its_smallest_run() -> None:
    results = night("tonight", run_lines(STRONG, losing=3), run_lines(STRONG, losing=2, world="kafka"))
    (finding,) = (results.findings or {}).values()
    assert finding.runs == {KEY: 3, "kafka/c/kill": 2}
    assert not finding.permitted
    assert (finding.example.run, finding.example.seed) == ("runs/simulated/c/kill/8", 8)
    assert (finding.example.faults, finding.example.scenarios) == (1, ("leader",))


def test_the_example_of_a_finding_is_a_run_in_which_nothing_permits_it() -> None:
    lines = list(run_lines(STRONG, losing=3))
    permitted = lines[-3].judgement
    assert permitted is not None
    swapped = msgspec.structs.replace(permitted, permitted=permitted.broken, broken={})
    lines[-3] = msgspec.structs.replace(lines[-3], judgement=swapped)
    (finding,) = (results_of("tonight", lines).findings or {}).values()
    assert (finding.permitted, finding.example.seed) == (False, 9)


def test_a_log_that_did_not_come_back_is_a_finding() -> None:
    recovery = Recovery(tried=True, unwritten={"ackproof-0": "no answer"})
    assert only(night("1", run_lines(STRONG, recovery=recovery))) == "stalled"


def test_a_broken_promise_without_an_identity_is_a_finding_all_the_same() -> None:
    line = next(run_lines(STRONG, losing=1, runs=1))
    assert line.judgement is not None
    judgement = msgspec.structs.replace(line.judgement, broken={"gap": 1}, identities={"lost-write": ["a" * 12]})
    assert [finding.identity for finding in shown_by(msgspec.structs.replace(line, judgement=judgement))] == ["gap"]


def test_what_the_settings_permit_everywhere_is_permitted() -> None:
    (finding,) = (night("tonight", run_lines(WEAK, losing=1)).findings or {}).values()
    assert finding.permitted


def test_verdicts_are_read_as_they_are_and_packed(tmp_path: Path) -> None:
    lines = list(run_lines(STRONG, losing=1))
    plain = read_results(write_campaign(tmp_path / "plain", iter(lines)))
    packed = read_results(write_campaign(tmp_path / "packed", iter(lines), packed=True))
    assert plain.findings == packed.findings
    assert only(plain) == only(results_of("lines", lines))
    (tmp_path / "packed" / "verdicts.jsonl.xz").write_bytes(b"not packed")
    with pytest.raises(ResultsError, match="cannot be unpacked"):
        read_results(tmp_path / "packed")


def test_of_a_matrix_alone_cells_are_known_and_findings_are_not(tmp_path: Path) -> None:
    write_json(tmp_path / MATRIX_FILE, build_matrix(run_lines(STRONG, losing=1)))
    alone = read_results(tmp_path)
    assert list(alone.cells) == [KEY]
    assert alone.findings is None


def test_a_directory_without_verdicts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NamedWronglyError, match=r"holds no verdicts\.jsonl"):
        read_results(tmp_path)


def test_lines_that_were_judged_before_identities_get_them() -> None:
    lines = list(run_lines(STRONG, losing=1))
    older = [
        msgspec.structs.replace(line, judgement=msgspec.structs.replace(line.judgement, identities={}))
        for line in lines
        if line.judgement
    ]
    assert only(results_of("older", older)) == only(results_of("newer", lines))
