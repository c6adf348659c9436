"""Histories recorded by version 0.1.0 get the verdicts, and the judgements, that version 0.1.0 gave them.

Their outcomes are another matter: since silence must be earned (docs/decisions/016-earned-silence.md), a run that lost
nothing is ``held`` only if fresh clients wrote and read the log after healing. Nobody tried that then, so what was held
is unknown now; what was lost or broken is so still.
"""

import json
import tarfile
from pathlib import Path

import msgspec
import pytest

from checkers.local import check_one as verdict_on
from checkers.verdicts.judgement import judge as judgement_on
from checkers.verdicts.outcome import Outcome
from harness.records.run_record import read_record

ARCHIVE = Path(__file__).parent / "recorded" / "histories.tar.xz"
RUNS = 200


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    target = tmp_path_factory.mktemp("recorded")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target)  # noqa: S202 - our own; filters came with 3.11.4
    return sorted(path.parent for path in target.glob("*/run.json"))


def test_two_hundred_histories_are_judged_as_before(recorded: list[Path]) -> None:
    assert len(recorded) == RUNS
    lossy = 0
    for run in recorded:
        expected = json.loads((run / "expected.json").read_text())
        verdict = verdict_on(run)
        judgement = judgement_on(read_record(run).chosen(), verdict)
        lossy += judgement.lost > 0
        proved = {True: Outcome.BROKEN_PROMISE, False: Outcome.PERMITTED_LOSS if judgement.lost else Outcome.UNKNOWN}
        assert judgement.outcome is proved[bool(judgement.broken)], run.name
        found = msgspec.to_builtins(msgspec.structs.replace(verdict, history=""), str_keys=True)
        of_before = {name: found[name] for name in expected["verdict"]}  # later versions say more
        of_before["delivery"] = {name: found["delivery"][name] for name in expected["verdict"]["delivery"]}
        assert of_before == expected["verdict"], run.name
        assert {
            "broken": judgement.broken,
            "permitted": judgement.permitted,
            "lost": judgement.lost,
            "judged": judgement.judged,
            "reason": judgement.reason,
            "permits_loss": judgement.permits_loss,
            "promise": judgement.promise,
        } == expected["judgement"], run.name
    assert lossy == 94, "the set holds losses, or its agreement would say little"
