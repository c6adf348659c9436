"""A release is judged by what showed on it and on the other one: every result, its tries, the budget, and a kill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import jsonschema
import msgspec
import pytest

from harness.ground.progress import Progress
from harness.lab.releases import (
    Kept,
    KnownHarm,
    PlayingTime,
    StoppedError,
    as_markdown,
    as_page,
    headline,
    judge,
    judged_releases,
)
from harness.lab.releases.judging import TRIES, Side
from harness.records.release_file import ReleaseEntry, ReleasePlay, ReleaseRecord
from harness.records.schemas import schema_of

HERE, OTHER = "4.4.0", "4.3.1"
SHOWN = ReleasePlay(shown=True, seen=("it went",))
QUIET = ReleasePlay(shown=False, seen=("it stayed",))
BLIND = ReleasePlay(shown=None, why="waited for 120 s, and not so: broker 1 leads")


def entry(
    name: str = "finding 008 commit", *, said: object = None, other_said: object = None, **more: object
) -> KnownHarm:
    expects = {HERE: said, OTHER: other_said}
    harms = KnownHarm(
        name, "finding", "a harm", lambda release: ("finding", "008", "--version", release), page="a page"
    )
    return harms._replace(expects=expects.__getitem__, **more)  # type: ignore[arg-type]


class Played:
    """A fake release: what its plays show, one after the other, and how often it was played."""

    def __init__(self, release: str, root: Path, *plays: ReleasePlay | BaseException) -> None:
        self.names: list[str] = []
        self._plays: Iterator[ReleasePlay | BaseException] = iter(plays)
        self.side = Side(release, Kept.of(root, release), self._play)

    def _play(self, asked: KnownHarm, _limit_s: float) -> ReleasePlay:
        self.names.append(asked.name)
        play = next(self._plays)
        if isinstance(play, BaseException):
            raise play
        return play


def judged(
    harms: Sequence[KnownHarm], here: Played, other: Played, budget: PlayingTime | None = None
) -> list[ReleaseEntry]:
    return list(judge(harms, here.side, other.side, budget or PlayingTime(40), Progress()))


# --- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "other_said", "ends", "other_ends", "result", "worse"),
    [
        (True, True, [SHOWN], [], "still", False),
        (True, True, [QUIET, SHOWN], [], "still", False),
        (True, False, [SHOWN], [QUIET] * TRIES, "still", True),
        (None, None, [SHOWN], [QUIET] * TRIES, "new", True),
        (False, False, [SHOWN], [BLIND] * TRIES, "new", True),
        (None, None, [SHOWN], [SHOWN], "still", False),
        (False, True, [QUIET] * TRIES, [QUIET, SHOWN], "gone", False),
        (True, True, [QUIET] * TRIES, [SHOWN], "gone", False),
        (False, False, [QUIET], [], "not shown", False),
        (None, None, [QUIET], [], "not shown", False),
        (True, True, [BLIND] * TRIES, [], "not observed", False),
        (None, None, [BLIND], [], "not observed", False),
        (True, True, [QUIET] * TRIES, [QUIET] * TRIES, "not observed", False),
        (False, True, [QUIET] * TRIES, [BLIND] * TRIES, "not observed", False),
    ],
)
def test_what_showed_on_both_releases_decides(
    *,
    said: bool | None,
    other_said: bool | None,
    ends: list[ReleasePlay],
    other_ends: list[ReleasePlay],
    result: str,
    worse: bool,
    tmp_path: Path,
) -> None:
    chosen, other = Played(HERE, tmp_path, *ends), Played(OTHER, tmp_path, *other_ends)
    (judgement,) = judged([entry(said=said, other_said=other_said)], chosen, other)
    assert (judgement.result, judgement.worse) == (result, worse)
    assert (len(chosen.names), len(other.names)) == (len(ends), len(other_ends))
    assert judgement.tries == sum(play is not BLIND for play in ends)
    assert judgement.shown == ends.count(SHOWN)
    assert (judgement.against_tries, judgement.against_shown) == (
        len(other_ends) - other_ends.count(BLIND),
        other_ends.count(SHOWN),
    )
    assert judgement.command == "ackproof finding 008 --version 4.4.0"


def test_what_could_not_be_observed_says_why(tmp_path: Path) -> None:
    for harm, ends, other_ends, why in (
        (entry(), [BLIND], [], "broker 1 leads"),
        (entry(other_said=True), [QUIET] * TRIES, [BLIND] * TRIES, "the compared release could not be asked: waited"),
        (entry(said=True), [QUIET] * TRIES, [QUIET] * TRIES, "a page says that it shows, and it showed on neither"),
    ):
        root = tmp_path / why[:5]
        (judgement,) = judged([harm], Played(HERE, root, *ends), Played(OTHER, root, *other_ends))
        assert why in judgement.why


def test_a_certificate_has_no_counterpart_on_the_other_release(tmp_path: Path) -> None:
    other = Played(OTHER, tmp_path)
    (judgement,) = judged([entry("certificate", said=False, compares=False)], Played(HERE, tmp_path, SHOWN), other)
    assert (judgement.result, judgement.worse, other.names) == ("new", True, [])


# --- the budget, and a kill ------------------------------------------------------------------------------------------


def test_the_budget_leaves_out_what_does_not_fit_and_takes_what_does(tmp_path: Path) -> None:
    clock = iter([0.0] + [60.0] * 20)
    harms = [entry("long", minutes=4), entry("short", minutes=1)]
    judgement = judged(
        harms, Played(HERE, tmp_path, QUIET), Played(OTHER, tmp_path), PlayingTime(3, lambda: next(clock))
    )
    assert [each.result for each in judgement] == ["not observed", "not shown"]
    assert judgement[0].why == "the budget of 3 minutes was over; the same command goes on"
    assert judgement[0].command


def test_a_play_that_does_not_end_is_not_observed_and_the_next_one_follows(tmp_path: Path) -> None:
    here = Played(HERE, tmp_path, StoppedError(), QUIET)
    judgement = judged([entry("hangs"), entry("ends")], here, Played(OTHER, tmp_path))
    assert [each.result for each in judgement] == ["not observed", "not shown"]
    assert judgement[0].why == "it did not end within 5 minutes"


def test_a_play_that_the_budget_ends_is_played_again_by_the_next_call(tmp_path: Path) -> None:
    clock = iter([0.0, 0.0, 0.0, 61.0, 61.0])
    budget = PlayingTime(1, lambda: next(clock))
    (judgement,) = judged([entry()], Played(HERE, tmp_path, StoppedError()), Played(OTHER, tmp_path), budget)
    assert "budget" in judgement.why
    assert Kept.of(tmp_path, HERE).plays(entry()) == ()


def test_after_a_kill_only_what_was_not_observed_is_played(tmp_path: Path) -> None:
    harms = [entry(name, said=True, other_said=True) for name in ("first", "second", "third", "fourth")]
    killed = Played(HERE, tmp_path, SHOWN, BLIND, BLIND, BLIND, QUIET, SystemExit())
    with pytest.raises(SystemExit):
        judged(harms, killed, Played(OTHER, tmp_path))
    assert killed.names == ["first", "second", "second", "second", "third", "third"]
    again = Played(HERE, tmp_path, SHOWN, SHOWN, SHOWN)
    judgement = judged(harms, again, Played(OTHER, tmp_path))
    assert again.names == ["second", "third", "fourth"]
    assert [(each.result, each.tries) for each in judgement] == [("still", 1), ("still", 1), ("still", 2), ("still", 1)]


def test_plays_of_a_release_are_kept_for_the_comparison_with_the_next_one(tmp_path: Path) -> None:
    Kept.of(tmp_path, OTHER).keep(entry(), (SHOWN,))
    other = Played(OTHER, tmp_path)
    (judgement,) = judged([entry(other_said=True)], Played(HERE, tmp_path, *[QUIET] * TRIES), other)
    assert (judgement.result, other.names) == ("gone", [])


def test_other_classes_have_files_of_their_own(tmp_path: Path) -> None:
    plain, patched = Kept.of(tmp_path, HERE), Kept.of(tmp_path, HERE, Path("cures/008"))
    plain.keep(entry(), (SHOWN,))
    assert patched.plays(entry()) == ()
    assert plain.plays(entry()) == (SHOWN,)


# --- pages ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def record(tmp_path: Path) -> ReleaseRecord:
    harms = [
        entry("finding 015 moved"),
        entry("finding 008 commit", said=True, other_said=True),
        entry("defect <b>", other_said=True),
        entry("finding 012 busy"),
        entry("story S01"),
    ]
    here = Played(HERE, tmp_path, SHOWN, SHOWN, *[QUIET] * TRIES, QUIET, BLIND)
    entries = judged(harms, here, Played(OTHER, tmp_path, *[QUIET] * TRIES, SHOWN))
    assert [each.result for each in entries] == ["new", "still", "gone", "not shown", "not observed"]
    return ReleaseRecord(
        release=HERE,
        against=OTHER,
        day="2026-11-29",
        by="0.4.0",
        minutes=12.0,
        machine="2 cores",
        entries=tuple(entries),
    )


def test_pages_have_each_result_with_tries_command_and_reason(record: ReleaseRecord) -> None:
    assert headline(record) == (
        "Apache Kafka 4.4.0 against 4.3.1: 1 harm that 4.3.1 does not have; "
        "1 new, 1 still, 1 gone, 1 not shown, 1 not observed"
    )
    markdown, page = as_markdown(record), as_page(record)
    for text in (markdown, page):
        assert text.count("ackproof finding 008 --version 4.4.0") == 5
        assert "broker 1 leads" in text
        assert "0 of 3 tries; 4.3.1: 1 of 1" in text
    assert "| finding 015 moved, **worse** | a harm | 1 of 1 try; 4.3.1: 0 of 3 |" in markdown
    assert "<b>" not in page.replace("&lt;b&gt;", "")
    assert "it went" in page


def test_the_record_is_valid_by_its_schema_and_names_a_judged_release(record: ReleaseRecord, tmp_path: Path) -> None:
    Kept.of(tmp_path, HERE).write(record, as_markdown(record), as_page(record))
    content = json.loads((tmp_path / HERE / "release.json").read_bytes())
    jsonschema.validate(content, schema_of("release.v1.schema.json"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content | {"entries": [{"name": "n"}]}, schema_of("release.v1.schema.json"))
    assert HERE in judged_releases(tmp_path)


def test_a_patched_release_was_not_judged(record: ReleaseRecord, tmp_path: Path) -> None:
    patched = msgspec.structs.replace(record, release="9.9.9", patch="cures/008")
    Kept.of(tmp_path, "9.9.9", Path("cures/008")).write(patched, "", "")
    assert "9.9.9" not in judged_releases(tmp_path)
