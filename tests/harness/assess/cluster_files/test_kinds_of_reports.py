"""Kinds of files from public reports, through the command: the verdict is right, or says that it is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness import assess as assessing
from harness.cli.app import exit_code_of
from tests.harness.assess.cluster_files.reading import IN_SYNC, LISTING, UNCLEAN, entry

LISTED_TWO = LISTING.replace("segment.bytes=1073741824", "min.insync.replicas=2")
OLD_LISTING = LISTING.replace("TopicId: b2c\t", "").replace(": ", ":", 3)


@pytest.fixture
def few_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command performs all stories; these are enough to see what it prints."""
    performer = assessing.Performer
    monkeypatch.setattr(assessing, "Performer", lambda _workers: performer(only=("S06", "S07", "S14")))


def assessed(directory: Path, files: Mapping[str, str], release: str, *more: str) -> int:
    """The exit code of the command for these files."""
    paths = []
    for name, text in files.items():
        (directory / name).write_text(text)
        paths.append(str(directory / name))
    return exit_code_of(["assess", *paths, "--producer", "acks=all", "--release", release, *more])


def combined(*lines: str) -> dict[str, str]:
    """Three nodes that are brokers and controllers, with these lines."""
    return {
        f"node-{number}.properties": "\n".join(["process.roles=broker,controller", f"node.id={number}", *lines, ""])
        for number in (1, 2, 3)
    }


def old(*lines: str) -> dict[str, str]:
    """Three brokers with ZooKeeper."""
    return {
        f"server-{number}.properties": "\n".join([f"broker.id={number}", "zookeeper.connect=zk:2181", *lines, ""])
        for number in (1, 2, 3)
    }


def apart(broker: Sequence[str], controller: Sequence[str]) -> dict[str, str]:
    """Three brokers and three controllers."""
    roles = {"broker": (broker, (1, 2, 3)), "controller": (controller, (11, 12, 13))}
    return {
        f"{role}-{number}.properties": "\n".join([f"process.roles={role}", f"node.id={number}", *lines, ""])
        for role, (lines, numbers) in roles.items()
        for number in numbers
    }


TWO, LOSING, SAFE = f"{IN_SYNC}=2", f"{UNCLEAN}=true", f"{UNCLEAN}=false"
DYNAMIC = "".join(
    f"Dynamic configs for broker {number} are:\n"
    + entry(UNCLEAN, "true", "DYNAMIC_BROKER", "DYNAMIC_DEFAULT_BROKER=false", "DEFAULT=false")
    for number in (1, 2, 3)
) + (
    "Default configs for brokers in the cluster are:\n"
    + entry(UNCLEAN, "false", "DYNAMIC_DEFAULT_BROKER")
    + entry(IN_SYNC, "2", "DYNAMIC_DEFAULT_BROKER")
)
CONFIGS_2_X = (
    "Configs for broker 1 are:\n"
    + entry(IN_SYNC, "2", "STATIC_BROKER", "DEFAULT=1")
    + "Default config for brokers in the cluster are:\n"
    + entry(UNCLEAN, "true", "DYNAMIC_DEFAULT_BROKER")
)
BY_ZOOKEEPER = "Configs for topic 'orders' are unclean.leader.election.enable=true,min.insync.replicas=2\n"
YAML = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata:
  name: events
spec:
  kafka:
    config:
      min.insync.replicas: {two}
      unclean.leader.election.enable: {unclean}
"""
QUOTED, PLAIN = YAML.format(two='"2"', unclean='"true"'), YAML.format(two=2, unclean="true")


@pytest.mark.usefixtures("few_stories")
@pytest.mark.parametrize(
    ("files", "release", "code"),
    [
        pytest.param(combined(TWO, LOSING), "3.7.0", 0, id="kraft-before-3.9"),
        pytest.param(combined(TWO, LOSING), "3.9.1", 1, id="kraft-since-3.9"),
        pytest.param(old(TWO, LOSING), "3.7.0", 1, id="zookeeper"),
        pytest.param(apart([TWO, SAFE], [TWO, LOSING]), "4.1.0", 1, id="controllers-unclean"),
        pytest.param(apart([TWO, SAFE], [LOSING]), "4.1.0", 1, id="controllers-unclean-and-silent-about-the-rest"),
        pytest.param(apart([TWO, LOSING], [TWO, SAFE]), "4.1.0", 0, id="controllers-clean"),
        pytest.param(apart([TWO, LOSING], [TWO]), "4.1.0", 0, id="controllers-clean-by-default"),
        pytest.param(apart([TWO, LOSING], []), "3.9.1", 0, id="controllers-without-a-word"),
        pytest.param(apart([TWO], []), "4.1.0", 2, id="controllers-may-make-it-one-in-sync"),
        pytest.param({"brokers.txt": DYNAMIC}, "4.1.0", 1, id="dynamic-by-broker"),
        pytest.param({"brokers.txt": DYNAMIC.replace("true", "false")}, "4.1.0", 0, id="dynamic-and-clean"),
        pytest.param({"configs.txt": CONFIGS_2_X}, "2.3.0", 1, id="configs-of-2.x"),
        pytest.param({"configs.txt": BY_ZOOKEEPER}, "2.3.0", 1, id="configs-by-zookeeper"),
        pytest.param({"kafka.yaml": QUOTED}, "4.1.0", 1, id="strimzi-quoted"),
        pytest.param({"kafka.yaml": PLAIN}, "4.1.0", 1, id="strimzi-plain"),
        pytest.param({"kafka.yaml": PLAIN.replace("true", "false")}, "4.1.0", 0, id="strimzi-clean"),
        pytest.param({"kafka.yaml": PLAIN.replace("true", "yes")}, "4.1.0", 2, id="strimzi-yes"),
        pytest.param(combined(TWO, f"{UNCLEAN}=TRUE"), "4.1.0", 1, id="upper-case"),
        pytest.param(combined(f"{IN_SYNC}=2  # copies"), "4.1.0", 2, id="trailing-comment"),
        pytest.param(combined(f"{IN_SYNC}=${{env:A}}", f"{UNCLEAN}=${{env:B}}"), "4.1.0", 2, id="provider"),
        pytest.param(combined(f'{IN_SYNC}="2"'), "4.1.0", 2, id="quotes"),
        pytest.param(combined(TWO, "broker.rack=${env:RACK}"), "4.1.0", 0, id="a-rack-decides-no-loss-by-kill"),
        pytest.param(old(TWO, "inter.broker.protocol.version=0.10.2", "log.message.format.version=0.10.2"), "2.3.1", 1,
                     id="protocol-left-behind"),
        pytest.param(old(TWO), "2.3.1", 0, id="protocol-of-the-release"),
    ],
)  # fmt: skip
def test_the_verdict_of_files_is_right(files: Mapping[str, str], release: str, code: int, tmp_path: Path) -> None:
    listing = {"topics.txt": OLD_LISTING if release.startswith("2") else LISTING}
    required = ["--require", "no loss by kill, restart", "--client", "java:2.3.1" if release == "2.3.1" else "java"]
    assert assessed(tmp_path, {**listing, **files}, release, *required) == code
    assert assessed(tmp_path, {**dict(reversed(files.items())), **listing}, release, *required) == code


@pytest.mark.usefixtures("few_stories")
def test_a_requirement_that_no_unknown_value_can_decide_is_judged(tmp_path: Path) -> None:
    files = {"topics.txt": LISTED_TWO, **combined("log.dirs=${env:DIRS}")}
    assert assessed(tmp_path, files, "4.1.0", "--require", "no loss by kill") == 0
    assert assessed(tmp_path, files, "4.1.0", "--require", "no risk") == 2


@pytest.mark.usefixtures("few_stories")
def test_what_was_not_understood_is_said_with_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"topics.txt": LISTING, **combined(f'{IN_SYNC}="2"')}
    assert assessed(tmp_path, files, "4.1.0") == 0
    assert f"{tmp_path / 'node-1.properties'}, line 3: " in capsys.readouterr().out
