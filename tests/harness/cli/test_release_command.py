"""`ackproof release`: what it plays, how it ends, and what the registry has that was not judged."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from harness.cli import release as command
from harness.cli.app import exit_code_of
from harness.ground.errors import HostError, NotReachableError
from harness.lab.releases import KnownHarm
from harness.records.release_file import ReleasePlay
from harness.worlds.kafka import installation
from harness.worlds.kafka.registry import before, published, versions_in
from harness.worlds.kafka.releases import parse_version

LIST = """<metadata><versioning><versions>
<version>2.4.0</version><version>4.2.2</version><version>4.3.1</version><version>4.3.0</version><version>4.4.0</version>
<version>4.4.1-rc0</version></versions></versioning></metadata>"""


@pytest.fixture
def shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Puts a fake player in the place of the real one: by entry, what 4.4.0 and what 4.3.1 show."""
    monkeypatch.chdir(tmp_path)

    def put(*, patched: bool = False, **plays: tuple[bool | None, bool | None]) -> None:
        def player(release: str, patch: Path | None, *_: object) -> Callable[[KnownHarm, float], ReleasePlay]:
            other = release != "4.4.0" or (patched and patch is None)
            return lambda entry, _: ReleasePlay(shown=plays[entry.name][other], why="slow", seconds=60)

        harms = [KnownHarm(name, "finding", "a harm", lambda release: ("finding", release)) for name in plays]
        monkeypatch.setattr(command, "provide", lambda *_: None)
        monkeypatch.setattr(command, "published", lambda: versions_in([LIST]))
        monkeypatch.setattr(command, "command_player", player)
        monkeypatch.setattr(command, "harms_of", lambda *_, **__: harms)

    return put


@pytest.mark.parametrize(
    ("plays", "code", "result"),
    [
        ({"a": (False, False)}, 0, "not shown"),
        ({"a": (True, True)}, 0, "still"),
        ({"a": (True, False)}, 1, "new"),
        ({"a": (None, False)}, 2, "not observed"),
        ({"b": (None, False), "a": (True, False)}, 1, "new"),
    ],
)
def test_it_ends_as_users_expect_and_keeps_its_pages(
    *,
    plays: dict[str, tuple[bool | None, bool | None]],
    code: int,
    result: str,
    shows: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    shows(**plays)
    assert exit_code_of(["release", "4.4.0"]) == code
    out = capsys.readouterr().out
    assert f"{result}: a: a harm\n" in out
    assert "Apache Kafka 4.4.0 against 4.3.1: " in out
    page = Path(out.splitlines()[-1])
    assert page == Path("results/releases/4.4.0/release.md")
    assert {"release.md", "release.json", "release.html", "plays"} <= {path.name for path in page.parent.iterdir()}


def test_json_is_the_record_that_is_kept(shows: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    shows(a=(True, False))
    assert exit_code_of(["release", "4.4.0", "--against", "4.3.0", "--out", "kept", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer == json.loads(Path("kept/4.4.0/release.json").read_bytes())
    assert (answer["release"], answer["against"], answer["minutes"]) == ("4.4.0", "4.3.0", 4.0)


def test_a_patch_is_compared_with_the_same_release_without_it(
    shows: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    shows(patched=True, a=(True, False))
    Path("cures").mkdir()
    assert exit_code_of(["release", "4.4.0", "--patch", "cures", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["against"], answer["patch"], answer["entries"][0]["result"]) == ("4.4.0", "cures", "new")
    assert answer["entries"][0]["command"] == "ackproof finding 4.4.0 --patch cures"
    assert Path("results/releases/4.4.0-cures/release.md").is_file()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "name the release to judge"),
        (("4.4",), "is not a version"),
        (("4.4.0", "--against", "4.4.0"), "compared with itself"),
        (("2.4.0",), "name another one with --against"),
        (("4.4.0", "--newest"), "leave VERSION out"),
        (("4.4.0", "--patch", "nowhere"), "nowhere"),
    ],
)
def test_what_is_named_wrongly_ends_with_64(
    words: tuple[str, ...], part: str, shows: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    shows(a=(False, False))
    assert exit_code_of(["release", *words]) == 64
    assert part in capsys.readouterr().err


def test_a_play_that_outlived_its_parent_is_waited_for(
    shows: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shows(a=(False, False))
    directory = Path("results/releases/4.4.0")
    directory.mkdir(parents=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(lock, fcntl.LOCK_UN))
        assert exit_code_of(["release", "4.4.0"]) == 0
    assert "waiting for the end of what another one plays" in capsys.readouterr().err


# --- the registry ----------------------------------------------------------------------------------------------------


def test_newer_releases_of_each_line_that_were_not_judged_are_named(
    shows: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shows(a=(False, False))
    monkeypatch.setattr(command, "judged_releases", lambda _: {"4.2.1", "4.3.1"})
    assert exit_code_of(["release", "--newest"]) == 2
    assert capsys.readouterr().out.splitlines() == [
        "4.2.2 was not judged: ackproof release 4.2.2",
        "4.4.0 was not judged: ackproof release 4.4.0",
    ]
    monkeypatch.setattr(command, "judged_releases", lambda _: {"4.2.2", "4.3.1", "4.4.0"})
    assert exit_code_of(["release", "--newest", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"judged": ["4.2.2", "4.3.1", "4.4.0"], "not_judged": []}


def test_a_release_that_was_judged_here_is_named_no_more(
    shows: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    shows(a=(False, False))
    assert exit_code_of(["release", "4.4.0"]) == 0
    capsys.readouterr()
    exit_code_of(["release", "--newest", "--json"])
    assert "4.4.0" in json.loads(capsys.readouterr().out)["judged"]


def test_the_line_before_is_the_newest_release_of_an_older_line() -> None:
    versions = versions_in([LIST, "<version>4.2.1</version>"])
    assert [*map(str, versions)] == ["2.4.0", "4.2.1", "4.2.2", "4.3.0", "4.3.1", "4.4.0"]
    assert str(before(parse_version("4.4.0"), versions)) == "4.3.1"
    assert str(before(parse_version("4.3.1"), versions)) == "4.2.2"
    assert before(parse_version("2.4.0"), versions) is None


def test_a_repository_that_names_no_release_is_an_error() -> None:
    with pytest.raises(HostError, match="named no release"):
        versions_in(["<html>sign in</html>"])


def test_maven_is_asked_with_its_own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/mvn")
    asked: list[list[str]] = []

    def attempt(words: list[str], **_: Any) -> CompletedProcess[str]:
        asked.append(words)
        kept = tmp_path / "ackproof" / "registry" / "org" / "apache" / "kafka" / "kafka_2.13"
        kept.mkdir(parents=True)
        (kept / "maven-metadata-mirror.xml").write_text(LIST)
        return CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(installation, "attempt", attempt)
    assert str(published()[-1]) == "4.4.0"
    assert not [word for word in asked[0] if "://" in word]


def test_a_repository_that_does_not_answer_ends_with_69(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/mvn")
    monkeypatch.setattr(installation, "attempt", lambda words, **_: CompletedProcess(words, 1, "no route to host", ""))
    with pytest.raises(NotReachableError):
        published()
    assert exit_code_of(["release", "--newest"]) == 69
    assert "check its network or mirror" in capsys.readouterr().err
