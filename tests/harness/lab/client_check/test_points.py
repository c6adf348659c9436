"""Each point of a check holds for the Python skeleton, and not for a skeleton with the mistake that it is about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from harness.lab.client_check import points, stage
from harness.lab.client_check.points import POINTS
from harness.lab.client_check.stage import BrokenPointError, CheckStage
from harness.lab.findings import OpenCluster
from harness.plan import starter
from harness.worlds.processes import processes_world
from tests.harness.worlds.processes.conftest import spec

pytestmark = pytest.mark.system

SKELETON: Final = starter("client", "python")["client.py"].read_text(encoding="utf-8")
NAMED: Final = {point.name: point for point in POINTS}
StageOf = Callable[[str], CheckStage]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCluster]:
    directory = tmp_path_factory.mktemp("run")
    world = processes_world(spec(stage.SETTINGS.to_mapping()), directory)
    world.open()
    yield OpenCluster(world, directory)
    world.close()


@pytest.fixture
def stage_of(cluster: OpenCluster, tmp_path: Path) -> Iterator[StageOf]:
    """The stage of a program with this text."""
    made: list[CheckStage] = []

    def make(text: str) -> CheckStage:
        file = tmp_path / "client.py"
        file.write_text(text, encoding="utf-8")
        made.append(CheckStage("the client program", (sys.executable, str(file)), cluster))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_every_point_holds_for_the_skeleton(stage_of: StageOf) -> None:
    tried = stage_of(SKELETON)
    for point in POINTS:
        if all(need in tried.hello.capabilities for need in point.needs):
            point.attempt(tried)


_OFFSET: Final = "offset=told.offset if told.offset >= 0 else None"
_WOKEN: Final = "if left_ms <= 0 or self.woken.is_set():"
_SEEK: Final = "self.library.seek(partition, offset)"
_FORCE: Final = "self.library._sender.force_close()  # noqa: SLF001 - close() alone would send what waits"
_FAILED: Final = 'sent.add_errback(lambda error: self.answers.error(call, "failed", error))'


class Mistake(NamedTuple):
    """A mistake: the point that tells it, the text that is right, and the text in its place."""

    point: str
    right: str
    wrong: str
    sentence: str


@pytest.mark.parametrize(
    "mistake",
    [
        Mistake("hello", '"version": kafka.__version__', '"version": ""', 'has an empty "version" in its first line'),
        Mistake("sends", _OFFSET, "offset=None", 'answers a send without "offset", with acks=all'),
        Mistake("sends", _OFFSET, "offset=told.offset + 1", r"told offset \d+ of a record that has \d+"),
        Mistake("sends", _OFFSET, 'offset="five"', "Expected `int | null`, got `str`"),
        Mistake("sends", "self._open.pop(number, None)", "self._open.get(number)", r"answers call \d+ twice"),
        Mistake(
            "sends",
            "try:\n            sent",
            'ANSWERS.write("sent\\n")\n        try:\n            sent',
            "wrote 'sent' to",
        ),
        Mistake("errors", '"class": kind, ', "", r'gives \w+ of a record of 2 MiB no "class"'),
        Mistake(
            "close", 'end = "fail" if kind == "refused" else "info"', 'end = "fail"', "a send is fail if it was refused"
        ),
        Mistake("reads", _SEEK, "self.library.seek_to_beginning(partition)", "from offset .* on, and begins with 0"),
        Mistake("waking up", _WOKEN, "if left_ms <= 0:", "does not answer a poll when it is woken up"),
        Mistake(
            "groups",
            'event="assigned", partitions=left',
            'event="assigned", partitions=[]',
            'tells no event "assigned"',
        ),
        Mistake(
            "close", f"{_FAILED}\n", "pass\n", r"left 5 calls, the first \d+ \(send\) unanswered; answer the calls"
        ),
        Mistake("crash", _FORCE, "self.library.flush()", "sends in a crash what waited for linger.ms"),
        Mistake(
            "tombstones", 'decoded(call, "value")', 'decoded(call, "value") or b""', "writes no record without a value"
        ),
        Mistake(
            "end of input",
            "del clients[number]\n",
            "del clients[number]\n    threading.Event().wait()\n",
            "does not end",
        ),
    ],
    ids=lambda mistake: f"{mistake.point}: {mistake.wrong[:30]}",
)
def test_a_mistake_is_told_by_its_point(mistake: Mistake, stage_of: StageOf, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SKELETON.count(mistake.right) == 1
    text = SKELETON.replace(mistake.right, mistake.wrong)
    if mistake.wrong == "pass\n":  # what the library leaves open is not answered either
        text = text.replace("        self.answers.rest(call)\n", "")
    monkeypatch.setattr(points, "ANSWER_LIMIT_S", 4.0)
    with pytest.raises(BrokenPointError, match=mistake.sentence):
        NAMED[mistake.point].attempt(stage_of(text))
