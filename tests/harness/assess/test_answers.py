"""Requirements, baselines, pages and JSON of an assessment, through the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import msgspec
import pytest

from harness import assess as assessing
from harness.assess import Assessment, Concern, Requirement, as_markdown, as_page, compared, judged
from harness.cli.app import exit_code_of
from harness.ground.errors import HostError, PlanError
from harness.ground.progress import Progress
from harness.plan import Existing
from harness.records.assessment_file import Assessed, Promised, ShownStory
from harness.records.schemas import schema_of

LOSING = ShownStory(
    story="S06", title="t", harm="acknowledged and lost", records=("x",), families=("kill", "partition"), link="l"
)
TWICE = msgspec.structs.replace(LOSING, story="S22", harm="in the log twice")


def concern(name: str, *shown: ShownStory, kind: str = "weakness") -> Concern:
    return msgspec.convert(
        {"kind": kind, "name": name, "sentence": "s", "shown": msgspec.to_builtins(shown), "change": "c", "price": "p"},
        Concern,
    )


def assessment(*concerns: Concern, topics: tuple[str, ...] = ("orders",), kept: bool = True) -> Assessment:
    promised = (Promised(families=("kill", "partition"), kept=kept, sentence="promised"),)
    group = Assessed(
        topics=topics,
        partitions=1,
        replicas=3,
        racks=None,
        settings={},
        producer="p",
        promised=promised,
        concerns=concerns,
        performed=48,
    )
    return Assessment(source="files", groups=(group,))


@pytest.mark.parametrize(
    ("text", "concerns", "kept", "met"),
    [
        ("no loss by kill, partition", (), True, True),
        ("no loss by kill and partition", (concern("a", LOSING),), True, False),
        ("no loss by kill", (concern("a", LOSING),), True, True),
        ("no loss by kill", (), False, False),
        ("no loss by pause", (), False, True),
        ("no loss by kill, partition", (concern("a", TWICE),), True, True),
        ("no duplicates", (concern("a", TWICE),), True, False),
        ("no disorder", (concern("a", TWICE),), True, True),
        ("No  weakness", (concern("a"),), True, False),
        ("no weakness", (concern("a", kind="risk"),), True, True),
        ("no risk", (concern("a", kind="risk"),), True, False),
        ("no known defect", (concern("a", kind="defect"),), True, False),
    ],
)
def test_requirements(text: str, concerns: tuple[Concern, ...], kept: bool, met: bool) -> None:
    answer = judged(text, assessment(*concerns, kept=kept))
    assert answer.met is met
    assert bool(answer.reasons) is not met


def test_no_requirement_is_met_by_what_was_not_read() -> None:
    assert not judged("no risk", Assessment(source="s", groups=())).met
    assert not judged("no risk", msgspec.structs.replace(assessment(), unread=("settings",))).met


@pytest.mark.parametrize("text", ["no loss by kill, pause, partition", "no duplicates", "no disorder"])
def test_where_a_story_gives_no_answer_a_requirement_is_not_known_and_never_broken(text: str) -> None:
    (group,) = assessment().groups
    silent = msgspec.structs.replace(group, unknown=("S01: the log was not read to its end",))
    answer = judged(text, Assessment(source="s", groups=(silent,)))
    assert (answer.words, assessing.exit_code_of([answer])) == ("NOT KNOWN", 2)
    assert answer.reasons == ("orders: not known: S01: the log was not read to its end",)


@pytest.mark.parametrize("text", ["", "safe", "no loss", "no loss by kil", "no losses by kill"])
def test_a_requirement_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="--require"):
        assessing.families_required([text])


def test_only_what_changed_since_the_baseline_is_new() -> None:
    before = assessment(concern("acks"), concern("racks", kind="risk"), topics=("a", "b"))
    now = assessment(concern("acks"), concern("retention", kind="risk"), topics=("a", "c"))
    answer = compared(now, before)
    assert answer.new == ("a: risk retention", "c: risk retention", "c: weakness acks")
    assert answer.gone == ("a: risk racks", "b: the topic")


def test_a_defect_is_new_once_and_not_by_a_new_topic() -> None:
    defect = concern("KAFKA-1", kind="defect")
    before = assessment(defect, topics=("a", "b"))
    assert compared(assessment(defect, topics=("a", "b", "c", "d")), before).new == ()
    upgraded = compared(assessment(defect, concern("KAFKA-2", kind="defect"), topics=tuple("abcde")), before)
    assert upgraded.new == ("a, b, c and 2 more: defect KAFKA-2",)
    assert compared(assessment(topics=("a", "b")), before).gone == ("a, b: defect KAFKA-1",)


def test_a_known_defect_that_an_old_topic_gets_is_new() -> None:
    has, had_not = assessment(concern("KAFKA-1", kind="defect"), topics=("a",)), assessment(topics=("b",))
    before = msgspec.structs.replace(has, groups=(*has.groups, *had_not.groups))
    now = assessment(concern("KAFKA-1", kind="defect"), topics=("a", "b"))
    assert compared(now, before).new == ("b: defect KAFKA-1",)
    assert compared(before, now).gone == ("b: defect KAFKA-1",)


def test_a_requirement_gives_each_reason_once_with_all_its_topics() -> None:
    weak = concern("acks", LOSING, msgspec.structs.replace(LOSING, story="S07"))
    first, other = assessment(weak, topics=("a",)), assessment(weak, topics=("b",))
    answer = judged("no loss by kill, partition", msgspec.structs.replace(first, groups=(*first.groups, *other.groups)))
    assert answer.reasons == ("a, b: acks: S06 t: a record (x) acknowledged and lost; and 1 more story",)


def test_pages_escape_names_and_have_everything() -> None:
    full = msgspec.structs.replace(
        assessment(concern("<b>|name", LOSING), topics=("<script>", "b", "c", "d")),
        requirements=(Requirement(text="no risk", met=False, reasons=("why",)),),
        new=("a: risk x",),
        limits=("a limit",),
    )
    for text in (as_page(full), as_markdown(full)):
        assert "<script>" not in text
        assert "<b>|name" not in text
        for part in ("S06", "no risk", "why", "a: risk x", "a limit", "promised"):
            assert part in text


TOPICS = """\
Topic: clean\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2
\tTopic: clean\tPartition: 0\tLeader: 0\tReplicas: 0,1,2\tIsr: 0,1,2
"""


@pytest.fixture
def two_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command performs all stories; these are enough to see what it prints."""
    performer = assessing.Performer
    monkeypatch.setattr(assessing, "Performer", lambda _workers: performer(only=("S01", "S07", "S40")))


@pytest.mark.usefixtures("two_stories")
def test_the_command_from_files_to_json_baseline_and_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics, saved, baseline = tmp_path / "topics", tmp_path / "saved.json", tmp_path / "baseline.json"
    topics.write_text(TOPICS)
    required = ["--require", "no loss by kill, pause, partition", "--release", "4.3.1"]
    assert exit_code_of(["assess", str(topics), *required, "--json", "--save", str(saved)]) == 0
    printed = capsys.readouterr().out
    jsonschema.validate(json.loads(printed), schema_of("assessment.v1.schema.json"))
    baseline.write_text(printed)

    assert exit_code_of(["assess", str(saved), "--json", "--release", "4.3.1"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["groups"] == json.loads(printed)["groups"]

    topics.write_text(TOPICS.replace("replicas=2", "replicas=1"))
    page, summary = tmp_path / "page.html", tmp_path / "summary.md"
    written = ["--page", str(page), "--summary", str(summary)]
    assert exit_code_of(["assess", str(topics), *required, "--baseline", str(baseline), *written]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("met: no loss by kill, pause, partition\nnew: clean: weakness too-few-in-sync\n")
    assert "S07" in page.read_text()
    assert "| Weak | too-few-in-sync" in summary.read_text()


@pytest.mark.usefixtures("two_stories")
def test_a_requirement_that_is_not_met_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topics = tmp_path / "topics"
    topics.write_text(TOPICS)
    assert exit_code_of(["assess", str(topics), "--producer", "acks=1", "--require", "no loss by kill, partition"]) == 1
    assert capsys.readouterr().out.startswith("NOT MET: no loss by kill, partition\n  clean: ")


@pytest.mark.parametrize("option", ["--page", "--summary", "--save"])
def test_a_place_that_cannot_be_written_is_said_before_the_work(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(assessing, "Performer", None)
    topics = tmp_path / "topics"
    topics.write_text(TOPICS)
    assert exit_code_of(["assess", str(topics), option, str(tmp_path)]) == 64
    assert f"{option} {tmp_path} is a directory; name a file" in capsys.readouterr().err
    assert exit_code_of(["assess", str(topics), option, str(tmp_path / "missing" / "file")]) == 64
    assert f"the directory {tmp_path / 'missing'} does not exist" in capsys.readouterr().err
    assert exit_code_of(["assess", str(topics), option, os.devnull]) == 64
    assert f"{option} {os.devnull} is not a regular file; name a file" in capsys.readouterr().err


def test_the_way_in_is_that_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = tmp_path / "existing.toml"
    plan.write_text(
        'families = ["move"]\n[worlds.kafka]\nhost = "existing"\nbootstrap = ["a.example:9092"]\n'
        '[worlds.kafka.security]\nprotocol = "SSL"\nca = "/ca.pem"\n'
    )
    asked: list[tuple[tuple[str, ...], str]] = []

    def read(world: Existing, _: Progress) -> None:
        asked.append((world.bootstrap, world.security.ca))
        raise HostError("not here")

    monkeypatch.setattr(assessing, "read_live", read)
    assert exit_code_of(["assess", "--access", str(plan)]) == 70
    assert exit_code_of(["assess", "--access", str(plan), "--bootstrap", "b.example:1, c.example:2"]) == 70
    assert asked == [(("a.example:9092",), "/ca.pem"), (("b.example:1", "c.example:2"), "/ca.pem")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a cluster (--bootstrap"),
        (["--bootstrap", "nonsense"], "is not the address of a server"),
        (["--bootstrap", "127.0.0.1:1", "{file}"], "not both"),
        (["{file}", "--release", "4.x"], "is not a version"),
        (["{file}", "--baseline", "{file}"], "--json > last.json"),
        (["--access", "{file}"], "{file}"),
    ],
)
def test_wrong_commands_end_in_a_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics"
    file.write_text(TOPICS)
    filled = [argument.replace("{file}", str(file)) for argument in arguments]
    assert exit_code_of(["assess", *filled]) == 64
    assert said.replace("{file}", str(file)) in capsys.readouterr().err
