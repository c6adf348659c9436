"""`ackproof accept`: the entry it writes, what it refuses, and what the next campaign makes of it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkers import VerdictLine, accepting
from checkers.anomalies.transactions import Unended
from harness.campaigns.comparison import accepted_sentences, accepting_sentences, compare_results, read_results
from harness.cli.app import exit_code_of
from harness.ground.errors import PlanError
from harness.ground.machine.versions import this_machine
from harness.plan import read_plan
from harness.records.accepted_file import parse_accepted, read_accepted
from harness.records.campaign_record import CampaignRecord, WorldRuns, write_campaign_record
from harness.records.verdict_lines import write_matrix
from tests.checkers.findings import a_finding
from tests.harness.campaigns.comparison.conftest import STRONG, WEAK, run_lines, write_campaign

KEY = "kafka/c/kill"
#: The sentence for an entry of no cells.
CELLS = "accepted[0].cells: takes a list of at least one entry; each is a string that is not empty, not []"
PLAN = 'families = ["kill"]\n[worlds.simulated]\n'


@pytest.fixture
def campaign(tmp_path: Path):
    """Make a campaign of a plan in ``tmp_path`` whose one cell loses a write against its promise."""
    (tmp_path / "mine.toml").write_text(PLAN)

    def make(
        name: str, *more: Iterator[VerdictLine], losing: int = 2, began: str = "2027-01-01T00:00:00+00:00"
    ) -> Path:
        directory = write_campaign(tmp_path / name, run_lines(STRONG, losing=losing, world="kafka"), *more)
        record = CampaignRecord(
            name=name,
            seed=1,
            status="completed",
            began=began,
            command="",
            machine=this_machine(),
            versions={},
            worlds={"kafka": WorldRuns(planned=10, client="java")},
            plan=str(tmp_path / "mine.toml"),
        )
        write_campaign_record(directory, record)
        write_matrix(directory)
        return directory

    return make


def accept(directory: Path, what: str, *more: str) -> int:
    return exit_code_of(["accept", str(directory), what, "--reason", "KAFKA-1", "--owner", "ann", *more])


def test_an_accepted_finding_is_in_the_file_beside_the_plan_and_excuses_the_next_night(
    campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, later = campaign("1"), campaign("2", began="2027-01-02T00:00:00+00:00")
    (identity,) = read_results(first).cells[KEY].identities["lost-write"]
    assert accept(first, identity[:6], "--until", "2027-01-31") == 0
    file = tmp_path / "accepted.toml"
    assert capsys.readouterr().out.splitlines() == [
        f"accepted until 2027-01-31: lost-write {identity} in {KEY}",
        str(file),
    ]
    (entry,) = read_accepted(tmp_path)
    assert (entry.identity, entry.cells, entry.owner, str(entry.until)) == (identity, (KEY,), "ann", "2027-01-31")
    assert read_plan(tmp_path / "mine.toml").accepted == file.read_text()

    assert write_matrix(later).verdict.exit_code == 1
    (later / "accepted.toml").write_text(file.read_text())  # as a campaign of this plan has it
    assert write_matrix(later).verdict.exit_code == 0
    clean = write_campaign(tmp_path / "0", run_lines(STRONG, world="kafka"))
    compared = compare_results(read_results(clean), read_results(later))
    assert (compared.exit_code, [cell.change for cell in compared.cells]) == (0, ["accepted"])
    assert compare_results(read_results(clean), read_results(first)).exit_code == 1


def test_findings_that_no_entry_names_are_named_at_once_and_each_night_and_entries_for_them_make_it_green(
    campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unseen = [*run_lines(STRONG, runs=12, losing=2, world="kafka", anomaly="unseen")][-2:]
    first, later = campaign("1", iter(unseen)), campaign("2", iter(unseen), began="2027-01-02T00:00:00+00:00")
    (identity,) = read_results(first).cells[KEY].identities["unseen"]
    assert accept(first, "lost-write", "--until", "2027-01-31") == 0
    red = f"{KEY} still fails: no entry names unseen {identity}."
    assert capsys.readouterr().out.splitlines()[1:4] == [
        red,
        f"To accept what {KEY} shows until a day:",
        f"  ackproof accept {first} {identity}",
    ]

    def night() -> tuple[int, list[str]]:
        (later / "accepted.toml").write_text((tmp_path / "accepted.toml").read_text())
        matrix = write_matrix(later)
        return matrix.verdict.exit_code, [*accepted_sentences(matrix.cells)]

    code, said = night()
    assert (code, red in said) == (1, True)
    assert accept(first, identity, "--until", "2027-01-31") == 0
    assert "red" not in capsys.readouterr().out
    code, said = night()
    assert (code, red in said) == (0, False)


def shown_together(*others: tuple[str, dict[str, object]]) -> Iterator[VerdictLine]:
    """Two runs of twelve whose lost write 7 shows as other anomalies, too."""
    findings = {"lost-write": [a_finding("lost-write", key="ackproof-0", value=7)]}
    findings |= {anomaly: [a_finding(anomaly, key="ackproof-0", **facts)] for anomaly, facts in others}
    lines = run_lines(
        STRONG, runs=12, losing=2, world="kafka", anomalies=findings, counts=dict.fromkeys(findings, 1), valid=False
    )
    yield from [*lines][-2:]


def test_a_defect_that_shows_as_three_anomalies_is_accepted_once(
    campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about_it = (("unseen", {"unseen": 1, "messages": [6, 7]}), ("poll-skip", {"skipped": [7]}))
    runs = [*shown_together(*about_it, ("corrupt-read", {"value": 8}))]
    first = campaign("1", iter(runs), losing=0)
    cell = read_results(first).cells[KEY]
    names = ("lost-write", "unseen", "poll-skip", "corrupt-read")
    (lost,), (unseen,), (skip,), (other,) = (cell.identities[name] for name in names)
    assert lost == unseen == skip != other
    assert accept(first, lost, "--until", "2027-01-31") == 0
    (entry,) = read_accepted(tmp_path)
    assert (entry.identity, entry.anomaly) == (lost, "lost-write")
    assert entry.shown == {KEY: (2, 12)}
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"accepted until 2027-01-31: lost-write {lost}, with unseen, with poll-skip in {KEY}"
    assert out[1] == f"{KEY} still fails: no entry names corrupt-read {other}."  # it is of another write
    without = [*run_lines(STRONG, runs=13, losing=1, world="kafka", anomaly="poll-skip")][-1:]
    alone = campaign("2", iter(runs), iter(without), losing=0)
    assert len(read_results(alone).cells[KEY].identities["poll-skip"]) == 2, "without a lost write it is another defect"


def test_a_line_for_each_defect_is_taken_as_it_is_and_lasts_thirty_days(
    campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about_it = ("unseen", {"unseen": 1, "messages": [7]})
    first = campaign("1", shown_together(about_it, ("corrupt-read", {"value": 8})), losing=0)
    cells = read_results(first).cells.values()
    lines = [line.split() for line in accepting_sentences(str(first), cells) if line.startswith("  ")]
    assert len(lines) == 2
    for line in lines:
        assert exit_code_of(line[1:]) == 0
    assert [entry.anomaly for entry in read_accepted(tmp_path)] == ["lost-write", "corrupt-read"]
    assert {(entry.reason, str(entry.until)) for entry in read_accepted(tmp_path)} == {
        ("no reason given", "2027-01-31")
    }
    assert "still fails" not in capsys.readouterr().out.splitlines()[-2]
    assert [cell.excused for cell in accepting(cells, read_accepted(tmp_path), "2027-01-02T00:00:00+00:00")] == [True]


def test_cells_of_the_same_promise_that_were_silent_are_in_the_entry(campaign, tmp_path: Path) -> None:
    others = (
        run_lines(STRONG, runs=5, world="kafka", cell="c/pause"),
        run_lines(STRONG, runs=5, world="simulated"),
        run_lines(WEAK, runs=5, world="kafka", cell="weak/kill"),
    )
    assert accept(campaign("1", *others), "lost-write", "--until", "2027-01-31") == 0
    assert [entry.shown for entry in read_accepted(tmp_path)] == [{KEY: (2, 10)}]
    (identity,) = read_results(tmp_path / "1").cells[KEY].identities["lost-write"]
    assert accept(tmp_path / "1", identity, "--until", "2027-01-31") == 0
    assert read_accepted(tmp_path)[1].shown == {KEY: (2, 10), "kafka/c/pause": (0, 5)}


def test_by_the_number_of_a_page_only_what_bears_its_mark_is_accepted(campaign, tmp_path: Path) -> None:
    def torn(seed: int, **facts: Unended) -> Iterator[VerdictLine]:
        findings = {"torn-transaction": [a_finding("torn-transaction", key="ackproof-0", value=seed, **facts)]}
        told = {"anomalies": findings, "counts": {"torn-transaction": 1}, "valid": False}
        return iter([*run_lines(STRONG, runs=seed, losing=1, world="kafka", **told)][-1:])

    directory = campaign("1", torn(11, unended=Unended(1, 5, 3, 6, next_commits=True)), torn(12), losing=0)
    cell = read_results(directory).cells[KEY]
    marked, unmarked = cell.identities["torn-transaction"]
    assert cell.marks == {marked: "no marker"}
    assert accept(directory, "008", "--until", "2027-01-31") == 0
    (entry,) = read_accepted(tmp_path)
    assert (entry.finding, entry.identity) == ("008", marked)
    assert accept(directory, unmarked, "--until", "2027-01-31") == 0


def test_entries_are_added_and_what_was_written_by_hand_stays(campaign, tmp_path: Path) -> None:
    (tmp_path / "accepted.toml").write_text("# ours\n")
    assert accept(campaign("1"), "lost-write", "--until", "2027-01-31", "--cell", KEY) == 0
    assert accept(campaign("2"), "002", "--until", "2027-02-28") == 0
    text = (tmp_path / "accepted.toml").read_text()
    assert text.startswith("# ours\n")
    by_name, by_number = parse_accepted(text, "")
    assert (by_name.identity, by_name.anomaly, by_name.shown) == ("", "lost-write", {KEY: (2, 10)})
    assert (by_number.finding, by_number.anomaly, bool(by_number.identity)) == ("002", "lost-write", True)
    assert tomllib.loads(text)["accepted"][0]["reason"] == "KAFKA-1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("ffff", "--until", "2027-01-31"),
            (
                'no finding of this campaign is called "ffff"; it has IDENTITY, lost-write; each is in the line '
                "that accepts it, in CAMPAIGN/matrix.md and report.html"
            ),
        ),
        (("lost-writes", "--until", "2027-01-31"), '"lost-writes"; did you mean "lost-write"? it has'),
        (("IDENTITY0", "--until", "2027-01-31"), '"IDENTITY0"; did you mean "IDENTITY"? it has'),
        (("006", "--until", "2027-01-31"), 'no finding of this campaign is called "006"'),
        (("lost-write", "--until", "2026-12-31"), "--until 2026-12-31 is before 2027-01-01"),
        (("lost-write", "--until", "soon"), '--until "soon" is not a day'),
        (("lost-write", "--until", "2027-01-31", "--cell", "kafka/c/kil"), "did you mean"),
        (("lost-write", "--until", "2027-01-31", "--into", "other.toml"), "would not be found beside a plan"),
    ],
)
def test_what_cannot_be_accepted_is_refused(
    campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    directory = campaign("1")
    (identity,) = read_results(directory).cells[KEY].identities["lost-write"]
    assert accept(directory, words[0].replace("IDENTITY", identity), *words[1:]) == 64
    message = message.replace("IDENTITY", identity).replace("CAMPAIGN", str(directory))
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "accepted.toml").exists()


def test_where_the_plan_is_gone_the_place_must_be_said(campaign, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = campaign("1")
    (tmp_path / "mine.toml").unlink()
    assert accept(directory, "lost-write", "--until", "2027-01-31") == 64
    assert "--into" in capsys.readouterr().err
    into = str(tmp_path / "accepted.toml")
    assert accept(directory, "lost-write", "--until", "2027-01-31", "--into", into) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[accepted]\n", "not valid TOML"),
        ("accepted = 1\n", "accepted: takes a list of tables ([[accepted]]), not 1"),
        ("acepted = []\n", 'did you mean "accepted"?'),
        (
            "[[accepted]]\nidentity = 'a'\ncells = ['c']\nowner = 'o'\nuntil = 2027-01-01\n",
            "accepted[0]: reason is missing; it takes a string that is not empty",
        ),
        ("[[accepted]]\ncells = ['c']\nowner = 'o'\nreason = 'r'\nuntil = 2027-01-01\n", "neither an identity nor"),
        (
            "[[accepted]]\nanomaly = 'lost-writ'\ncells = ['c']\nowner = 'o'\nreason = 'r'\nuntil = 2027-01-01\n",
            "lost-write",
        ),
        ("[[accepted]]\nanomaly = 'unseen'\ncells = []\nowner = 'o'\nreason = 'r'\nuntil = 2027-01-01\n", CELLS),
        (
            "[[accepted]]\nanomaly = 'unseen'\ncells = ['c']\nowner = 'o'\nreason = 'r'\nuntil = 'x'\n",
            'accepted[0].until: takes a day, such as 2027-01-31, not "x"',
        ),
        (
            "[[accepted]]\nidentity = 'a'\ncells = ['c']\nowner = 'o'\nreason = 'r'\nuntil = 2027-01-01\nsince = 1\n",
            "accepted[0].since: takes a time, such as 2027-01-31T12:00:00Z, not 1",
        ),
        (
            (
                "[[accepted]]\nanomaly = 'unseen'\ncells = ['c']\nowner = 'o'\nreason = 'r'\nuntil = 2027-01-01\n"
                "shown = { c = [3, 2] }\n"
            ),
            "accepted[0].shown.c: takes how many runs showed it, and of how many, not 3, 2",
        ),
        ("[[accepted]]\nuntill = 2027-01-01\n", "until"),
    ],
)
def test_a_file_that_says_something_wrong_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "mine.toml").write_text(PLAN)
    (tmp_path / "accepted.toml").write_text(text)
    for words in (["campaign"], ["soak", "--for", "1s"]):
        assert exit_code_of([*words, str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")]) == 64
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_documented_finding_that_fits_is_offered_by_name(campaign, capsys: pytest.CaptureFixture[str]) -> None:
    directory = campaign("1")
    exit_code_of(["compare", str(campaign("2")), str(directory)])
    capsys.readouterr()
    from harness.campaigns.comparison import offered_sentences  # noqa: PLC0415 - beside what it is about
    from harness.records.campaign_record import read_campaign_record  # noqa: PLC0415

    first, second = offered_sentences(
        directory, read_results(directory).cells.values(), read_campaign_record(directory)
    )
    assert first.startswith(f"{KEY}: maybe finding 002, ")
    assert second.endswith(f" ackproof accept {directory} 002")


def test_findings_of_all_libraries_that_take_turns_are_looked_for(campaign) -> None:
    from harness.campaigns.comparison import ran_by  # noqa: PLC0415 - beside what it is about
    from harness.records.campaign_record import read_campaign_record  # noqa: PLC0415

    directory = campaign("1")
    record = read_campaign_record(directory)
    assert record is not None
    (cell,) = read_results(directory).cells.values()
    assert [ran.name for ran in ran_by(record, cell)] == ["kafka", "java"]
    record.worlds["kafka"].other_clients = ("java:4.3.1", "confluent-kafka")
    write_campaign_record(directory, record)
    ran = ran_by(read_campaign_record(directory), cell)[1:]
    assert [*ran[1:], ran[0].name] == [("java", "4.3.1"), ("confluent-kafka", ""), "java"]


def test_a_pipe_in_place_of_accepted_findings_is_a_mistake_of_who_put_it_there(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "accepted.toml")
    with pytest.raises(PlanError, match=r"accepted\.toml is not a regular file; correct it, or remove it"):
        read_accepted(tmp_path)
