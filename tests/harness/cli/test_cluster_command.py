"""Words of `ackproof cluster` and others that are refused with the nearest, and what a cluster is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.app import exit_code_of
from harness.runs.cluster import ClusterAnswer, ClusterRequest
from nemesis.topology import Shape


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cluster", "break", "kil"], 'Invalid value for \'FAULT\': unknown fault "kil"; did you mean "kill"?'),
        (
            ["cluster", "break", "cut", "--shape", "rong"],
            'unknown shape "rong"; did you mean "ring"?',
        ),
        (
            ["cluster", "break", "cut", "--shape", "x"],
            'unknown shape "x"; there are isolate, isolate-also',
        ),
        (["cluster", "up", "--world", "proceses"], 'unknown world "proceses"; did you mean "processes"?'),
        (["cluster", "up", "--host", "namespace"], 'unknown host "namespace"; did you mean "namespaces"?'),
        (["explore", "tla-1", "--rule", "log-match"], 'unknown rule "log-match"; did you mean "logs-match"?'),
        (["schema", "matrices"], 'unknown schema "matrices"; did you mean "matrix"?'),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(arguments) == 64
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("shape", Shape)
def test_every_shape_is_written_as_plans_have_it(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ClusterRequest] = []

    def ask(directory: Path, request: ClusterRequest) -> ClusterAnswer:
        asked.append(request)
        return ClusterAnswer()

    monkeypatch.setattr("harness.cli.cluster.ask", ask)
    assert exit_code_of(["cluster", "break", "cut", "--shape", shape.value, "--in", "here"]) == 0
    assert asked == [ClusterRequest(op="break", fault="cut", shape=shape)]
