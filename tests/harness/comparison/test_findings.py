"""Findings of campaigns by identity, and what became of them from night to night."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import build_matrix, proportion
from checkers.measures.recovery import Recovery
from harness.comparison import FindingStatus, Results, read_results, results_of, shown_by, trace
from harness.errors import NamedWronglyError, ResultsError
from harness.records.files import MATRIX_FILE, write_json
from tests.harness.comparison.conftest import STRONG, WEAK, night, run_lines, write_campaign
from workloads.settings import Settings

KEY = "simulated/c/kill"


def only(results: Results) -> str:
    (identity,) = results.findings or {}
    return identity


def statuses(earlier: list[Results], latest: Results) -> list[FindingStatus]:
    return [one.status for one in trace(earlier, latest)]


def test_a_finding_is_counted_by_cell_and_shown_by_its_smallest_run() -> None:
    found = night("tonight", run_lines(STRONG, losing=3), run_lines(STRONG, losing=2, world="kafka"))
    (finding,) = (found.findings or {}).values()
    assert finding.runs == {KEY: 3, "kafka/c/kill": 2}
    assert not finding.permitted
    assert (finding.example.run, finding.example.seed) == ("runs/simulated/c/kill/8", 8)
    assert (finding.example.faults, finding.example.stories) == (1, ("leader",))


def test_the_example_of_a_finding_is_a_run_in_which_nothing_permits_it() -> None:
    lines = list(run_lines(STRONG, losing=3))
    permitted = lines[-3].judgement
    assert permitted is not None
    swapped = msgspec.structs.replace(permitted, permitted=permitted.broken, broken={})
    lines[-3] = msgspec.structs.replace(lines[-3], judgement=swapped)
    (finding,) = (results_of("tonight", lines).findings or {}).values()
    assert (finding.permitted, finding.example.seed) == (False, 9)


def test_a_log_that_did_not_come_back_is_a_finding_that_nights_remember() -> None:
    recovery = Recovery(tried=True, unwritten={"ackproof-0": "no answer"})
    stalled, clean = night("1", run_lines(STRONG, recovery=recovery)), night("2", run_lines(STRONG))
    assert only(stalled) == "stalled"
    assert statuses([], stalled) == [FindingStatus.NEW]
    assert statuses([stalled], stalled) == [FindingStatus.KNOWN]
    assert statuses([stalled], clean) == [FindingStatus.GONE]


def test_a_broken_promise_without_an_identity_is_a_finding_all_the_same() -> None:
    line = next(run_lines(STRONG, losing=1, runs=1))
    assert line.judgement is not None
    judgement = msgspec.structs.replace(line.judgement, broken={"gap": 1}, identities={"lost-write": ["a" * 12]})
    assert [one.identity for one in shown_by(msgspec.structs.replace(line, judgement=judgement))] == ["gap"]


def test_what_the_settings_permit_everywhere_is_permitted() -> None:
    (finding,) = (night("tonight", run_lines(WEAK, losing=1)).findings or {}).values()
    assert finding.permitted


def test_a_finding_is_new_then_known_then_gone_then_back() -> None:
    clean, lossy = night("clean", run_lines(STRONG)), night("lossy", run_lines(STRONG, losing=1))
    assert statuses([], lossy) == [FindingStatus.NEW]
    assert statuses([clean], lossy) == [FindingStatus.NEW]
    assert statuses([clean, lossy], lossy) == [FindingStatus.KNOWN]
    assert statuses([clean, lossy], clean) == [FindingStatus.GONE]
    assert statuses([lossy, clean], lossy) == [FindingStatus.BACK]
    assert statuses([clean], clean) == []


def test_a_finding_names_the_nights_that_showed_it_first_and_last() -> None:
    nights = [night(name, run_lines(STRONG, losing=losing)) for name, losing in (("1", 1), ("2", 0), ("3", 1))]
    (traced,) = trace(nights, night("4", run_lines(STRONG)))
    assert (traced.status, traced.first, traced.last) == (FindingStatus.GONE, "1", "3")


def test_another_story_of_faults_is_another_finding_and_the_first_is_not_gone_while_it_shows() -> None:
    one, other = night("1", run_lines(STRONG, losing=1)), night("2", run_lines(STRONG, losing=1, story="follower"))
    assert statuses([one], other) == [FindingStatus.NEW, FindingStatus.NOT_SEEN]
    assert statuses([one, other], night("3", run_lines(STRONG, losing=1, anomaly="unseen"))) == [
        FindingStatus.NEW,
        *[FindingStatus.GONE] * 2,
    ]


def test_what_was_not_run_again_is_not_gone() -> None:
    lossy, elsewhere = night("1", run_lines(STRONG, losing=1)), night("2", run_lines(STRONG, cell="other/kill"))
    assert statuses([lossy], elsewhere) == [FindingStatus.NOT_LOOKED_FOR]
    unjudged = night("2", run_lines(STRONG, valid="unknown", reason="killed"))
    assert statuses([lossy], unjudged) == [FindingStatus.NOT_LOOKED_FOR]


def test_what_was_run_with_other_settings_is_not_gone() -> None:
    lossy, other = night("1", run_lines(STRONG, losing=1)), night("2", run_lines(Settings(min_insync_replicas=3)))
    assert statuses([lossy], other) == [FindingStatus.NOT_LOOKED_FOR]


@pytest.mark.parametrize(
    "switched",
    [{"planted_bug": "acknowledge-after-append"}, {"missed_epoch": "kafka"}, {"idempotence_window": "connection"}],
)
def test_without_the_defect_that_was_switched_on_what_it_did_is_gone(switched: dict[str, Any]) -> None:
    defective = Settings(min_insync_replicas=2, **switched)
    assert statuses([night("1", run_lines(defective, losing=1))], night("2", run_lines(STRONG))) == [FindingStatus.GONE]


def test_how_likely_silence_is_chance_follows_from_the_rate_before() -> None:
    often, seldom = night("1", run_lines(STRONG, losing=5)), night("1", run_lines(STRONG, losing=1))
    clean = night("2", run_lines(STRONG, runs=20))
    for before, losing in ((often, 5), (seldom, 1)):
        share = proportion(losing, 10)
        assert share.low < losing / 10 < share.high
        expected = (1 - share.high) ** 20, (1 - share.low) ** 20
        assert trace([before], clean)[0].missed_by_chance == pytest.approx(expected)


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
    assert trace([alone], night("2", run_lines(STRONG, losing=1)))[0].status is FindingStatus.NEW
    assert trace([night("1", run_lines(STRONG, losing=1))], alone) == []


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
