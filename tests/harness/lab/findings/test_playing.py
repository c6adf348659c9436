"""Findings are played from the command line: what is asked for, what was observed, and how that ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka.errors import KafkaConnectionError

from harness.cli.app import exit_code_of
from harness.ground.errors import HarnessError
from harness.ground.known_defects import product_findings
from harness.ground.progress import Progress
from harness.lab.findings import (
    FINDINGS,
    AsDocumented,
    InUse,
    PlayableFinding,
    Played,
    PlayVerdict,
    Way,
    asked_for,
    compared,
    playing,
    plays,
)
from harness.lab.findings.playable import expects_defect, expects_nothing
from harness.lab.findings.playing import played_here
from harness.lab.findings.stage import FindingStage, NotObservedError
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.patches import Patch
from harness.worlds.kafka.releases import DEFAULT_VERSION, numbered, parse_version

ROOT = Path(__file__).parents[4]
PAGES = {page.name[:3]: page for page in (ROOT / "docs" / "findings").glob("*.md")}
SHOWN, NOT_SHOWN, NOT_OBSERVED = PlayVerdict

#: Commands of a page, by what follows "ackproof finding".
COMMANDS = re.compile(r"^ackproof finding (.*)$", re.MULTILINE)


# --- page, entry and script -----------------------------------------------------------------------------------------


def test_a_number_holds_page_entry_and_script_together() -> None:
    assert list(product_findings()) == sorted(PAGES)
    assert list(FINDINGS) == [*product_findings(), "KAFKA-20742"]
    for number, finding in FINDINGS.items():
        assert finding.number == number
        assert finding.link == (
            f"docs/findings/{PAGES[number].name}" if number in PAGES else finding.entry.defect[0].link
        )


@pytest.mark.parametrize("number", PAGES)
def test_a_page_says_the_one_command_with_ways_clients_and_releases_that_there_are(
    number: str, releases: Callable[..., None]
) -> None:
    text = PAGES[number].read_text(encoding="utf-8")
    commands = COMMANDS.findall(text)
    assert number in {command.split()[0] for command in commands}
    assert not re.search(r"python -m tests|pytest tests/|-m harness", text)
    for command in commands:
        words = command.split()
        options = dict(zip(words[1::2], words[2::2], strict=True))
        releases(options.get("--version", DEFAULT_VERSION), *options.get("--client", "").split(":")[1:])
        asked = asked_for(
            FINDINGS[words[0]],
            options.get("--way", ""),
            options.get("--version", ""),
            options.get("--client", ""),
        )
        assert asked.expected is not None, command


@pytest.mark.parametrize("number", PAGES)
def test_a_page_names_each_way_to_play_it(number: str) -> None:
    text = PAGES[number].read_text(encoding="utf-8")
    _, *others = FINDINGS[number].ways
    assert [way for way in others if f"--way {way}" not in text and f"`{way}`" not in text] == []


@pytest.mark.parametrize("number", PAGES)
def test_a_page_names_the_releases_of_its_controls(number: str) -> None:
    text = PAGES[number].read_text(encoding="utf-8")
    assert [release for release in FINDINGS[number].controls if release not in text] == []


def test_a_finding_shows_first_of_all_and_its_controls_do_not() -> None:
    for finding in FINDINGS.values():
        expects, client = finding.ways[finding.usual].expects, finding.clients[0]
        assert True in [expects(finding, InUse(version, client, version)) for version in _affected(finding)]
        assert finding.controls == tuple(sorted(finding.controls, key=parse_version))


def _affected(finding: PlayableFinding) -> Iterator[Any]:
    for defect in finding.entry.defect:
        for first, _ in defect.affected:
            yield numbered(first)


# --- what a page says of releases ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "way", "version", "client", "expected"),
    [
        ("012", "busy", "4.3.0", "", True),
        ("012", "busy", "4.3.1", "", False),
        ("012", "busy", "3.9.2", "", None),
        ("012", "idle", "4.3.0", "", False),
        ("015", "moved", "3.9.2", "", False),
        ("015", "moved", "4.3.1", "java", True),
        ("015", "rested", "4.3.1", "", False),
        ("014", "left", "4.3.1", "", True),
        ("014", "left", "4.3.1", "java", False),
        ("009", "end", "4.3.1", "", True),
        ("009", "end", "4.3.1", "java", False),
        ("009", "end", "4.3.1", "java:3.9.2", True),
        ("009", "end", "4.3.1", "kafka-python", False),
        ("009", "marker", "4.3.1", "java", False),
        ("009", "marker", "4.1.1", "java", True),
        ("009", "marker", "4.3.1", "kafka-python", True),
        ("008", "commit", "4.2.1", "", False),
        ("008", "commit", "4.4.0", "", True),
        ("001", "refused", "4.3.1", "java", False),
        ("001", "reference", "4.3.1", "", True),
        ("005", "reference", "4.3.1", "", False),
        ("KAFKA-20742", "added", "4.3.1", "", True),
        ("KAFKA-20742", "added", "4.4.0", "", False),
    ],
)
def test_a_release_is_expected_to_show_it_or_not_or_nothing_is_said(
    *,
    number: str,
    way: str,
    version: str,
    client: str,
    expected: bool | None,
    releases: Callable[..., None],
) -> None:
    releases(version, *client.split(":")[1:])
    assert asked_for(FINDINGS[number], way, version, client).expected is expected


@pytest.mark.parametrize(
    ("expected", "verdicts", "outcome"),
    [
        (True, [SHOWN], AsDocumented.YES),
        (True, [NOT_SHOWN, SHOWN], AsDocumented.YES),
        (True, [NOT_SHOWN, NOT_OBSERVED], AsDocumented.NO),
        (False, [NOT_SHOWN, NOT_OBSERVED], AsDocumented.YES),
        (False, [NOT_SHOWN, SHOWN], AsDocumented.NO),
        (True, [NOT_OBSERVED], AsDocumented.UNKNOWN),
        (False, [NOT_OBSERVED], AsDocumented.UNKNOWN),
        (None, [SHOWN], AsDocumented.UNKNOWN),
    ],
)
def test_plays_are_held_against_the_page(
    expected: bool | None, verdicts: list[PlayVerdict], outcome: AsDocumented
) -> None:
    assert compared(expected, [Played(verdict) for verdict in verdicts]) is outcome


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has releases of Kafka installed, by name only, and root with every program."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")
    monkeypatch.setattr(Installation, "require_startable", lambda _: None)

    def install(*versions: str) -> None:
        wanted = {version: Installation(parse_version(version), tmp_path / version) for version in versions}

        def find(version: str) -> Installation:
            return wanted[version]

        monkeypatch.setattr(playing, "find", find)

    return install


@pytest.fixture
def finding(monkeypatch: pytest.MonkeyPatch, releases: Callable[..., None]) -> Callable[..., None]:
    """Puts a finding in the place of 008, whose plays end as given; a control has the same ones."""
    releases(DEFAULT_VERSION, "4.2.1", "3.9.1")

    def put(*ends: Played | Exception) -> None:
        following = iter(ends)

        def play(stage: FindingStage) -> Played:
            stage.does("working")
            end = next(following)
            if isinstance(end, Exception):
                raise end
            return end

        ways = {
            "usual": Way("it is done", play, expects_defect()),
            "control": Way("it is not done", play, expects_nothing, ("java",)),
        }
        monkeypatch.setitem(FINDINGS, "008", PlayableFinding("008", ways, controls=("4.2.1",)))

    return put


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = exit_code_of(["finding", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize(
    ("options", "end", "code", "words"),
    [
        ((), Played.of(["a fact"], shown=True), 0, "shown; its page says that it shows: as its page says"),
        ((), Played.of(["a fact"], shown=False), 1, "not shown; its page says that it shows: otherwise"),
        (("--version", "4.2.1"), Played.of(["a fact"], shown=False), 0, "page says that it does not show: as its page"),
        (("--version", "3.9.1"), Played.of(["a fact"], shown=True), 2, "its page says nothing of these releases"),
        (("--way", "control"), Played.of(["a fact"], shown=True), 1, "otherwise than its page says"),
    ],
)
def test_what_was_observed_is_said_in_sentences_and_by_the_exit_code(
    *,
    options: tuple[str, ...],
    end: Played,
    code: int,
    words: str,
    finding: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    finding(end)
    exit_code, out, err = told(capsys, "008", *options)
    assert exit_code == code
    assert "- a fact" in out
    assert words in out.splitlines()[-1]
    assert "finding 008 ..." in err


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (NotObservedError("waited for 120 s, and not so: broker 1 leads"), "and not so: broker 1 leads"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (KafkaConnectionError("no node"), "no node"),
    ],
)
def test_what_could_not_be_observed_says_why_and_ends_with_2(
    error: Exception, why: str, finding: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    finding(error)
    code, out, _ = told(capsys, "008")
    assert code == 2
    assert "- could not be observed: " in out
    assert why in out


def test_several_runs_are_told_one_by_one_and_counted(
    finding: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    finding(Played.of([], shown=False), Played.of(["a fact"], shown=True), NotObservedError("too slow"))
    code, out, _ = told(capsys, "008", "--runs", "3")
    assert code == 0
    assert "run 2: shown\n- a fact\nrun 3: could not be observed\n" in out
    assert "shown in 1 of 3 runs, could not be observed in 1" in out


def test_json_has_what_was_observed(finding: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    finding(Played.of(["a fact"], shown=True))
    code, out, _ = told(capsys, "008", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["outcome"] == "as its page says"
    assert (answer["finding"], answer["way"], answer["version"]) == ("008", "usual", DEFAULT_VERSION)
    assert answer["plays"] == [{"verdict": "shown", "seen": ["a fact"], "why": ""}]


def test_without_a_number_all_findings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys)
    assert code == 0
    for number, entry in product_findings().items():
        assert f"{number}  {entry.title}\n" in out
    assert "     kafka since 4.0.0; without it: 3.9.2; 2 minutes\n" in out
    assert "     KAFKA-17754: kafka since 0.11.0.0; KAFKA-19446: kafka 0.11.0.0 to before 4.2.0; " in out
    code, out, _ = told(capsys, "--json")
    assert [json.loads(line)["finding"] for line in out.splitlines()] == list(FINDINGS)


def test_the_ways_of_a_finding_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "11", "--ways")
    assert code == 0
    assert [f"--way {way}:" in out for way in FINDINGS["011"].ways] == [True] * 4
    assert "as root" in out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("016",), "016"),
        (("015", "--way", "mooved"), "moved"),
        (("002", "--client", "java"), "confluent-kafka"),
        (("015", "--client", "kafka-python:2.0.0"), "only the Java client"),
        (("015", "--version", "4.3"), "is not a version"),
        (("--version", "4.3.1"), "name the finding"),
        (("--ways",), "name the finding"),
        (("--patch", "DIR"), "name the finding"),
    ],
)
def test_what_is_named_wrongly_ends_with_64(
    words: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = told(capsys, *words)
    assert code == 64
    assert part in err


def test_a_release_that_is_not_installed_is_named_with_the_command_that_installs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = told(capsys, "015", "--version", "4.0.7")
    assert code == 70
    assert "ackproof kafka install 4.0.7" in err
    assert "Traceback" not in err


def test_root_and_programs_that_are_missing_are_named(
    releases: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    releases(DEFAULT_VERSION)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    code, _, err = told(capsys, "007")
    assert code == 70
    assert "finding 007 needs root: see `ackproof doctor`" in err
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == "nft" else name)
    code, _, err = told(capsys, "007")
    assert (code, "needs the programs nft" in err) == (70, True)


@pytest.mark.parametrize(
    ("options", "shown", "code", "words"),
    [
        ((), False, 0, "not shown; its page says that it shows without the patch: cured (docs"),
        ((), True, 1, "shown; its page says that it shows without the patch: not cured (docs"),
        (("--way", "control"), False, 0, "not shown; its page says that it does not show: as its page says"),
        (("--version", "3.9.1"), False, 2, "its page says nothing of these releases: not known"),
    ],
)
def test_a_patch_cures_what_shows_without_it(
    *,
    options: tuple[str, ...],
    shown: bool,
    code: int,
    words: str,
    finding: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(playing, "read_patch", lambda directory, _release: Patch(directory))
    (tmp_path / "A.class").touch()
    finding(Played.of([], shown=shown))
    exit_code, out, _ = told(capsys, "008", "--patch", str(tmp_path), *options)
    assert exit_code == code
    assert words in out.splitlines()[-1]
    assert f", and {tmp_path} before it" in "".join(out.splitlines())


@pytest.mark.parametrize("classes", [True, False])
def test_a_play_puts_the_classes_of_its_patch_first_if_there_are_any(
    *, classes: bool, finding: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def play(stage: FindingStage) -> Played:
        seen.append(stage.patch)
        return Played.of([], shown=False)

    finding()
    (tmp_path / ("A.class" if classes else "other")).touch()
    way = Way("it is done", play)
    asked = asked_for(PlayableFinding("008", {"usual": way}))
    played_here(msgspec.structs.replace(asked, patch=Patch(tmp_path)), tmp_path, Progress())
    assert seen == [str(tmp_path) if classes else ""]


def test_a_patched_client_library_is_loaded_first_in_a_process_of_its_own(
    finding: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding()
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "__init__.py").write_text("raise ValueError('this one was loaded')")
    asked = msgspec.structs.replace(asked_for(FINDINGS["008"]), patch=Patch(tmp_path))
    with pytest.raises(HarnessError, match=f"plays with {tmp_path} failed: ValueError: this one was loaded"):
        list(plays(asked, 1, Progress()))
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho \'{"verdict": "shown", "seen": ["a fact"]}\'')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert [(each.verdict, *each.seen) for each in plays(asked, 2, Progress())] == [(SHOWN, "a fact")] * 2


def test_a_play_leaves_no_directory(
    finding: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    finding(Played.of([], shown=True), ValueError("a defect of a script"))
    assert len(list(playing.plays(asked_for(FINDINGS["008"]), 1, Progress()))) == 1
    with pytest.raises(ValueError, match="a defect of a script"):
        list(playing.plays(asked_for(FINDINGS["008"]), 1, Progress()))
    assert list(tmp_path.iterdir()) == []
