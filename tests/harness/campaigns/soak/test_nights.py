"""Memory over nights: what is new, known, gone and back, and what all nights together say of a cell."""

from __future__ import annotations

import lzma
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from pyarrow import fs

from checkers import Outcome, build_matrix
from harness.campaigns.comparison import FindingStatus, Results, accept_commands, cell_anomalies_of
from harness.campaigns.soak.ending import end, exit_code
from harness.campaigns.soak.ledger import read_verdicts
from harness.campaigns.soak.nights import Night, accumulated, known_findings, read_night, read_nights
from harness.campaigns.soak.trend import write_trend
from harness.ground.errors import NamedWronglyError
from harness.records.verdict_lines import write_matrix
from tests.harness.campaigns.soak.conftest import IDENTITIES, KnowingChecks, Workshop, asked, line_of

SHOWN = {"simulated/acks=1,isr=1,unclean=false/kill", "processes/acks=1,isr=1,unclean=false/kill"}


@pytest.fixture
def night(tmp_path: Path, workshop: Workshop, monkeypatch: pytest.MonkeyPatch):
    """Make a night of some seconds in which every run of odd seed comes to ``outcome``."""
    for name in ("witness", "write_report"):
        monkeypatch.setattr(f"harness.campaigns.soak.ending.{name}", lambda directory, progress: None)

    def make(name: str, outcome: Outcome, earlier=()):
        tonight = Workshop(tmp_path / "nights" / name, workshop.plan, workshop.clock)
        tonight.directory.mkdir(parents=True)
        tonight.checks = KnowingChecks(
            lambda world, cell, seed: line_of(world, cell, seed, outcome if seed % 2 else Outcome.HELD)
        )
        wanted = asked(for_s=12.0, seed=int(name), began=f"2026-01-0{name}T00:00:00+00:00")
        recorded = tonight.session(wanted)
        return end(recorded, wanted, tonight.plan, "", earlier=earlier, progress=tonight.progress)

    return make


def test_cells_without_a_judged_run_are_not_green(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("witness", "write_report"):
        monkeypatch.setattr(f"harness.campaigns.soak.ending.{name}", lambda directory, progress: None)
    workshop.checks = KnowingChecks(lambda world, cell, seed: line_of(world, cell, seed, Outcome.HELD))
    wanted = asked(for_s=1.0)
    recorded = workshop.session(wanted)
    judged = {line.run.world + "/" + line.run.cell for line in read_verdicts(workshop.directory)}
    assert 0 < len(judged) < 8
    ending = end(recorded, wanted, workshop.plan, "", earlier=[], progress=workshop.progress)
    assert ending.exit_code == 2
    (message,) = [sentence for sentence in ending.sentences if "had no run judged" in sentence]
    assert message.startswith(f"{8 - len(judged)} of 8 cells had no run judged: ")
    assert all((cell in message) == (cell not in judged) for cell in workshop.plan.cells)
    assert ending.sentences[-1].startswith(f"Unknown: {len(judged)} of 8 cells could be judged")
    again = write_matrix(workshop.directory)  # as `ackproof report` makes it
    assert (again.verdict.exit_code, again.verdict.sentence) == (2, ending.sentences[-1])


def test_a_soak_without_a_judged_run_names_no_report(workshop: Workshop) -> None:
    wanted = asked(for_s=0.0)
    recorded = workshop.session(wanted)
    ending = end(recorded, wanted, workshop.plan, "", earlier=[], progress=workshop.progress)
    assert (ending.exit_code, ending.report) == (2, None)
    assert not (workshop.directory / "report.html").exists()


def test_a_finding_is_new_then_known_then_gone_then_back(tmp_path: Path, night) -> None:
    outcomes = [Outcome.HELD, Outcome.BROKEN_PROMISE, Outcome.BROKEN_PROMISE, Outcome.HELD, Outcome.BROKEN_PROMISE]
    statuses, sentences = [], []
    for number, outcome in enumerate(outcomes, start=1):
        before = read_nights([str(tmp_path / "nights")], tmp_path) if number > 1 else []
        ending = night(str(number), outcome, before)
        here = read_night(tmp_path / "nights" / str(number))
        statuses.append(
            {
                kind.status
                for kind in cell_anomalies_of([earlier_night.results for earlier_night in before], here.results)
            }
        )
        sentences.append(ending.sentences)
        assert ending.exit_code == (1 if outcome is Outcome.BROKEN_PROMISE else 0)
    assert [min(shown, key=list(FindingStatus).index, default=None) for shown in statuses] == [
        None,
        FindingStatus.NEW,
        FindingStatus.KNOWN,
        FindingStatus.GONE,
        FindingStatus.BACK,
    ]
    said = [
        next((sentence for sentence in words if sentence.startswith("Findings that nothing permits")), "")
        for words in sentences
    ]
    assert said[0] == ""
    assert re.fullmatch(r"Findings that nothing permits, after 1 earlier night: new in \d cells\.", said[1])
    assert re.fullmatch(r".*, after 2 earlier nights: known in \d cells\.", re.sub(r", gone from.*", ".", said[2]))
    assert re.fullmatch(r".*, after 3 earlier nights: gone from \d cells\.", said[3])
    assert sum(sentence.startswith("new in ") for sentence in sentences[1]) == int(
        re.findall(r"new in (\d)", said[1])[0]
    )
    assert "smallest: 0 faults, seed " in "\n".join(sentences[1])
    assert (tmp_path / "nights" / "5" / "nights.html").is_file()


def test_an_end_leads_with_the_cells_and_a_clean_one_says_that_it_looked(night) -> None:
    ending = night("2", Outcome.HELD, [held(Outcome.HELD, 9, "simulated/a/kill", 1)])
    assert "Findings that nothing permits, after 1 earlier night: none." in ending.sentences
    ending = night("3", Outcome.BROKEN_PROMISE, [held(Outcome.HELD, 9, "simulated/a/kill", 1)])
    kinds = [
        "runs judged",
        "broken promise in the last",
        "Findings that nothing permits",
        "new in ",
        "Tried again from",
    ]
    places = [next(n for n, sentence in enumerate(ending.sentences) if kind in sentence) for kind in kinds]
    assert places == sorted(places)


def test_nights_are_read_in_the_order_of_their_beginning_and_without_the_soak_itself(tmp_path: Path, night) -> None:
    for name in ("3", "1", "2"):
        night(name, Outcome.HELD)
    nights = read_nights([str(tmp_path / "nights")], tmp_path / "nights" / "2")
    assert [earlier_night.began[:10] for earlier_night in nights] == ["2026-01-01", "2026-01-03"]
    with pytest.raises(NamedWronglyError, match="--nights: nowhere://x cannot be read"):
        read_nights(["nowhere://x"], tmp_path)


def test_verdicts_above_or_below_a_night_are_no_night_of_their_own(tmp_path: Path, night) -> None:
    """They are of the same runs, where somebody had them checked once more: `ackproof check nights`."""
    night("1", Outcome.HELD)
    first = tmp_path / "nights" / "1"
    for other in (tmp_path / "nights", first / "runs"):
        other.mkdir(exist_ok=True)
        shutil.copy(first / "verdicts.jsonl", other)
    assert [earlier_night.results.name for earlier_night in read_nights([str(tmp_path / "nights")], tmp_path)] == [
        str(first)
    ]


def test_a_night_is_the_same_from_its_record_and_from_its_verdicts(tmp_path: Path, night) -> None:
    night("1", Outcome.BROKEN_PROMISE)
    directory = tmp_path / "nights" / "1"
    quick = read_night(directory)
    assert quick.record is not None
    (directory / "night.json").unlink()
    slow = read_night(directory)
    assert slow.record is None
    assert slow.results.findings == quick.results.findings
    assert {key: cell.outcome for key, cell in slow.results.cells.items()} == {
        key: cell.outcome for key, cell in quick.results.cells.items()
    }
    assert slow.runs == quick.runs


def test_verdicts_that_grew_since_are_read_themselves(tmp_path: Path, night) -> None:
    night("1", Outcome.HELD)
    directory = tmp_path / "nights" / "1"
    more = line_of("simulated", "acks=1,isr=1,unclean=false/kill", 77, Outcome.BROKEN_PROMISE)
    with (directory / "verdicts.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(more) + b"\n")
    assert known_findings([read_night(directory)]) == {IDENTITIES[1]}


def test_nights_in_a_store_and_packed_ones_are_read(tmp_path: Path, night, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, outcome in (("1", Outcome.HELD), ("2", Outcome.BROKEN_PROMISE), ("3", Outcome.BROKEN_PROMISE)):
        night(name, outcome)
    here = read_nights([str(tmp_path / "nights")], tmp_path)
    for name in ("2", "3"):
        verdicts = tmp_path / "nights" / name / "verdicts.jsonl"
        with lzma.open(f"{verdicts}.xz", "wb") as packed:
            packed.write(verdicts.read_bytes())
        verdicts.unlink()
    (tmp_path / "nights" / "3" / "night.json").unlink()
    bucket = fs.SubTreeFileSystem(str(tmp_path.parent), fs.LocalFileSystem())
    monkeypatch.setattr("checkers.histories.stores._system", lambda root: (bucket, tmp_path.name))
    for source in ("s3://bucket/nights", str(tmp_path / "nights")):
        nights = read_nights([source], tmp_path)
        assert [earlier_night.results.name for earlier_night in nights] == [
            f"{source}/{name}" for name in ("1", "2", "3")
        ]
        assert [earlier_night.results.findings for earlier_night in nights] == [
            earlier_night.results.findings for earlier_night in here
        ]


def test_runs_of_all_nights_add_up_to_one_bound(tmp_path: Path, night) -> None:
    for name in ("1", "2", "3"):
        night(name, Outcome.HELD)
    nights = read_nights([str(tmp_path / "nights")], tmp_path)
    for cell in accumulated(nights):
        assert cell.nights == 3
        assert cell.runs == sum(earlier_night.results.cells[cell.key].runs_judged for earlier_night in nights)
        assert cell.sentence.startswith(f"held in {cell.runs} runs, at most ")


def held(outcome: Outcome, runs: int, key: str, seed: int | None, **changes: object) -> Night:
    world, _, cell = key.partition("/")
    (built,) = build_matrix([line_of(world, cell, 1, Outcome.HELD)]).cells
    built = msgspec.structs.replace(built, outcome=outcome, runs=runs, runs_judged=runs, **changes)
    return Night(results=Results(name="n", cells={key: built}, findings={}), began="", seed=seed)


def test_nights_that_put_nothing_to_the_test_bound_nothing() -> None:
    nights = [held(Outcome.NOT_EXERCISED, 5_000, "simulated/a/kill", 1), held(Outcome.HELD, 30, "simulated/a/kill", 2)]
    (cell,) = accumulated(nights)
    assert (cell.nights, cell.runs, cell.sentence[:16]) == (2, 30, "held in 30 runs,")
    (cell,) = accumulated(nights[:1])
    assert (cell.runs, cell.sentence) == (0, "not exercised in 5,000 runs")


def test_nights_of_one_seed_count_once_in_virtual_time_and_each_time_elsewhere() -> None:
    for world, runs in (("simulated", 50), ("kafka", 90)):
        nights = [held(Outcome.HELD, count, f"{world}/a/kill", 1) for count in (40, 50)]
        assert [cell.runs for cell in accumulated(nights)] == [runs]


def test_a_longer_night_of_one_seed_does_not_hide_one_that_broke_a_promise_or_lost() -> None:
    before = held(Outcome.HELD, 50, "simulated/a/kill", 1)
    (cell,) = accumulated([before, held(Outcome.BROKEN_PROMISE, 40, "simulated/a/kill", 1)])
    assert cell.sentence == "broken promise in the last; broken, or stalled, in 1 of 2 nights"
    (cell,) = accumulated([before, held(Outcome.PERMITTED_LOSS, 40, "simulated/a/kill", 1, runs_lost=4)])
    assert cell.sentence.startswith("lost in 4 of 40 runs, ")
    (cell,) = accumulated([held(Outcome.NOT_EXERCISED, 90, "simulated/a/kill", 1), before])
    assert (cell.nights, cell.runs, cell.sentence[:16]) == (2, 50, "held in 50 runs,")


def test_a_longer_night_of_one_seed_with_other_settings_does_not_hide_the_last() -> None:
    last = held(Outcome.HELD, 40, "simulated/a/kill", 1)
    other = held(Outcome.HELD, 50, "simulated/a/kill", 1, settings={"acks": 0})
    (cell,) = accumulated([other, last])
    assert (cell.nights, cell.runs) == (1, 40)


def test_a_night_that_nobody_could_judge_does_not_hide_one_that_broke_a_promise() -> None:
    outcomes = (Outcome.BROKEN_PROMISE, Outcome.HELD, Outcome.UNKNOWN)
    (cell,) = accumulated([held(outcome, 9, "kafka/a/kill", None) for outcome in outcomes])
    assert cell.sentence == "unknown in the last; broken, or stalled, in 1 of 3 nights"


def test_forty_thousand_runs_are_said_as_the_issue_wants_it(tmp_path: Path, night) -> None:
    night("1", Outcome.HELD)
    (earlier_night,) = read_nights([str(tmp_path / "nights")], tmp_path)
    key, cell = next(iter(earlier_night.results.cells.items()))
    many = msgspec.structs.replace(cell, runs_judged=41_220)
    results = msgspec.structs.replace(earlier_night.results, cells={key: many})
    assert (
        accumulated([Night(results=results, began="")])[0].sentence == "held in 41,220 runs, at most 0.0073 % at 95 %"
    )


def test_other_settings_under_the_same_name_add_up_to_nothing(tmp_path: Path, night) -> None:
    night("1", Outcome.HELD)
    (earlier_night,) = read_nights([str(tmp_path / "nights")], tmp_path)
    other = {
        key: msgspec.structs.replace(cell, settings=cell.settings | {"planted.bug": "x"})
        for key, cell in earlier_night.results.cells.items()
    }
    planted = Night(results=msgspec.structs.replace(earlier_night.results, cells=other), began="")
    assert {cell.nights for cell in accumulated([planted, earlier_night])} == {1}


def test_the_page_of_many_nights_is_small_and_runs_no_script(tmp_path: Path, night) -> None:
    night("1", Outcome.HELD)
    night("2", Outcome.BROKEN_PROMISE)
    nights = read_nights([str(tmp_path / "nights")], tmp_path)
    named = msgspec.structs.replace(nights[0].results, name="<script>alert(1)</script>")
    nights[0] = msgspec.structs.replace(nights[0], results=named, began="<b>")
    anomalies = cell_anomalies_of([nights[0].results], nights[1].results)
    page = write_trend(tmp_path, nights, anomalies).read_text()
    assert len(page) < 200_000
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("<svg") == 4
    assert IDENTITIES[1] in page
    for what in ("Anomalies that nothing permits", "Speed", "Risky situations met", "Longest recovery"):
        assert what in page


def test_the_exit_code_says_that_the_harness_failed_before_anything_else(workshop: Workshop, tmp_path: Path) -> None:
    recorded = workshop.session()
    broken = build_matrix([line_of("simulated", "a/kill", 1, Outcome.BROKEN_PROMISE)])
    held = build_matrix([line_of("simulated", "a/kill", 1, Outcome.HELD)])
    assert exit_code(recorded.state, broken, "") == 1
    assert exit_code(recorded.state, broken, "it was asked to stop") == 1
    assert exit_code(recorded.state, held, "it was asked to stop") == 130
    recorded.state.failures.append("the kafka world is given up")
    assert exit_code(recorded.state, broken, "") == 70
    shutil.rmtree(workshop.directory)


def test_the_page_has_one_line_for_each_finding_that_is_red(tmp_path: Path) -> None:
    (broken,) = read_nights(["results/reference/kafka-short-timeout-librdkafka"], tmp_path)
    anomalies = cell_anomalies_of([], broken.results)
    red = [cell for cell in broken.results.cells.values() if cell.red()]
    assert (len(red), len(anomalies)) == (3, 16)
    page = write_trend(tmp_path, [broken], anomalies).read_text()
    lines = {words for cell in red for words in accept_commands(str(tmp_path), cell)}
    assert page.count("ackproof accept") == len(lines) > len(red)
    assert all(f"<code>{words}</code>" in page for words in lines)
