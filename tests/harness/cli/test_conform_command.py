"""`ackproof conform`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec
import pytest

from harness.cli.app import exit_code_of
from harness.ground.errors import HostError, StartError
from harness.lab.conform import RecordedTrace, read_trace, write_trace
from harness.runs.stories import Story, StoryOutcome

TRACES: Final = Path(__file__).parents[3] / "results" / "reference" / "conform"
TRACE: Final = str(TRACES / "S01-all-2.json")


def test_a_recorded_trace_of_kafka_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["conform", TRACE]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["S01 all/2 on Apache Kafka 4.3.1: 12 same, as expected", "1 story, 12 steps, 0 unexplained"]


def test_a_wrong_rule_is_shown_at_its_first_step_with_those_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["conform", TRACE, "--bug", "keep-fenced-in-isr"]) == 1
    lines = capsys.readouterr().out.splitlines()
    steps = [line for line in lines if line.startswith("  step ")]
    assert steps == [
        "  step 7, kill 0: same",
        "  step 8, wait until 0 is fenced: unexplained",
        "  step 9, write y to leader: unexplained",
    ]
    assert "    isr: the cluster shows 1 2; the core shows 0 1 2" in lines


@pytest.mark.parametrize(
    ("acknowledged", "head", "more"),
    [
        (["base", "y"], "S01 all/2 on Apache Kafka 4.3.1: 12 same, as expected", []),
        (
            ["base"],
            "S01 all/2 on Apache Kafka 4.3.1: 12 same, otherwise",
            ["expected to be acknowledged, and not: y"],
        ),
    ],
)
def test_what_came_out_on_the_cluster_is_told_beside_the_steps(
    acknowledged: list[str], head: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = msgspec.structs.replace(read_trace(Path(TRACE)), outcome=StoryOutcome(acknowledged=tuple(acknowledged)))
    assert exit_code_of(["conform", str(write_trace(tmp_path, trace))]) == 0
    first, *others, _ = capsys.readouterr().out.splitlines()
    assert (first, [line.strip() for line in others]) == (head, more)


def test_as_json_each_story_is_a_line_with_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["conform", TRACE, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    compared = json.loads(line)
    assert (compared["story"], compared["system"]) == ("S01", "Apache Kafka 4.3.1")
    assert {step["word"] for step in compared["steps"]} == {"same"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["S99"], "or name a file, such as my.toml, a trace, or a directory of traces"),
        (["S01", "--settings", "all/9"], "all/9"),
        (["T01"], "T01 is performed in other columns: v1, v2, "),
        (["S01", "--world", "existing"], "existing"),
        (["S01", "--world", "processes", "--version", "3.9.2"], "has no releases; leave --version out"),
        (["--world", "processes", "--version", "3.9.2"], "has no releases; leave --version out"),
        ([TRACE, "--bug", "keep-fenced"], "keep-fenced"),
    ],
)
def test_what_does_not_exist_is_named(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["conform", *arguments]) == 64
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", [["--world", "kafka"], ["--version", "3.9.2"], ["--settings", "all/2"], ["--save", "kept"]]
)
def test_a_trace_takes_no_option_of_a_performance(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["conform", TRACE, *option]) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"is a recorded trace, so nothing is performed; leave {option[0]} out" in shown.err


def own_story(directory: Path, number: str = "M1") -> Path:
    """A reader's own story, with the script of S01."""
    text = resources.files("harness.runs.stories").joinpath("data", "S01.toml").read_text(encoding="utf-8")
    file = directory / f"{number}-mine.toml"
    file.write_text(text.replace('number = "S01"', f'number = "{number}"'))
    return file


def test_a_readers_own_story_is_performed_and_its_kept_trace_needs_the_file_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def performed(story: Story, *_: str) -> RecordedTrace:
        return msgspec.structs.replace(read_trace(Path(TRACE)), story=story.number)

    monkeypatch.setattr("harness.cli.conform.performed_elsewhere", performed)
    file, kept = own_story(tmp_path), tmp_path / "kept"
    expected = ["M1 all/2 on Apache Kafka 4.3.1: 12 same, as expected", "1 story, 12 steps, 0 unexplained"]
    assert exit_code_of(["conform", str(file), "--save", str(kept)]) == 0
    assert capsys.readouterr().out.splitlines() == expected
    file.unlink()
    assert exit_code_of(["conform", str(kept / "M1-all-2.json")]) == 0
    assert capsys.readouterr().out.splitlines() == expected


def test_an_own_story_that_cannot_be_told_apart_or_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = own_story(tmp_path, "S01")
    assert exit_code_of(["conform", str(file)]) == 64
    assert f"{file} has the number of another story, S01; give it another one, such as M1" in capsys.readouterr().err
    assert exit_code_of(["conform", str(tmp_path / "none.toml")]) == 64
    assert "none.toml cannot be read" in capsys.readouterr().err
    file.write_text('number = "M1"\ntitle = "t"\nsteps = """\nwrite x too 0\n"""\n')
    assert exit_code_of(["conform", str(file)]) == 64
    assert f"{file}, line 4" in capsys.readouterr().err


def test_every_word_and_directory_is_looked_up_before_a_story_is_performed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    performed: list[str] = []
    monkeypatch.setattr("harness.lab.conform.performing.world_for", lambda spec, *_: performed.append(spec.story))
    assert exit_code_of(["conform", "S01", "S99", "--world", "processes"]) == 64
    assert "unknown story" in capsys.readouterr().err
    (file := tmp_path / "file").touch()
    assert exit_code_of(["conform", "S01", "--world", "processes", "--save", str(file)]) == 64
    assert f"--save {file} is not a directory; name a directory" in capsys.readouterr().err
    assert performed == []


def plays(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[str]:
    """Let S01 fail with this error, and every other story show what the trace of S12 has; the stories that began."""
    begun: list[str] = []

    def performed(story: Story, _column: str, _world: str, _release: str) -> RecordedTrace:
        begun.append(story.number)
        if story.number == "S01":
            raise error
        return read_trace(TRACES / "S12-all-2.json")

    monkeypatch.setattr("harness.cli.conform.performed_elsewhere", performed)
    return begun


@pytest.mark.parametrize(("more", "code"), [([], 70), (["--bug", "keep-fenced-in-isr"], 1)])
def test_a_story_that_cannot_be_performed_is_named_and_the_next_one_follows(
    more: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = plays(monkeypatch, StartError("a node died"))
    assert exit_code_of(["conform", "S01", "S12", *more]) == code
    shown = capsys.readouterr()
    assert begun == ["S01", "S12"]
    assert shown.err == "ackproof: S01 all/2: a node died\n"
    assert shown.out.startswith("S12 all/2 on Apache Kafka 4.3.1: ")
    assert shown.out.splitlines()[-1].startswith("1 story, 14 steps, ")
    assert shown.out.endswith(" unexplained, 1 not performed\n")


def test_a_machine_that_cannot_offer_the_world_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = plays(monkeypatch, HostError("no namespaces here"))
    assert exit_code_of(["conform", "S01", "S12"]) == 70
    assert begun == ["S01"]
    assert capsys.readouterr().err == "ackproof: no namespaces here\n"


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text('{"form": 1, "steps": []}')
    assert exit_code_of(["conform", str(tmp_path)]) == 64
    assert "is no recorded trace" in capsys.readouterr().err


#: Texts of a trace and what stands in their place, with what the complaint says.
OTHER: Final = [
    (b'"story":"S01"', b'"story":"S999"', "this version lacks the story of the trace"),
    (b'"column":"all/2"', b'"column":"all/9"', "unknown column"),
    (b'"request.timeout.ms"', b'"request.timeout.mss"', "unknown setting"),
    (b'"min.insync.replicas":2', b'"min.insync.replicas":"two"', "min.insync.replicas takes"),
    (b'"leading":', b'"leeding":', "unknown field `leeding`"),
    (b'"form":1', b'"form":1,"more":2', "unknown field `more`"),
    (b'"form":1', b'"form":2', "has form 2, and this version reads form 1; use the version that recorded it"),
    (b'"form":1', b'"form":2,"more":2', "has form 2, and this version reads form 1; use the version that recorded it"),
    (b"S01", b"\xff\xfe", "is no recorded trace"),
    (b'"steps":', b'"steps":' + 5_000 * b"[", "is no recorded trace"),
]


@pytest.mark.parametrize(("text", "instead", "complaint"), OTHER, ids=[str(number) for number in range(len(OTHER))])
def test_a_damaged_or_unknown_trace_is_refused_in_a_sentence_that_says_what_to_do(
    text: bytes, instead: bytes, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = Path(TRACE).read_bytes()
    assert text in content
    (tmp_path / "x.json").write_bytes(content.replace(text, instead))
    assert exit_code_of(["conform", str(tmp_path)]) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert complaint in shown.err
    assert "; record " in shown.err or ", or record it again" in shown.err


def test_a_directory_without_traces_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["conform", str(tmp_path)]) == 64
    assert "has no recorded traces; record one" in capsys.readouterr().err
