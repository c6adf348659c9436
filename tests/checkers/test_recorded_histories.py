"""Histories recorded by version 0.1.0 get the verdicts, and the judgements, that version 0.1.0 gave them.

Their outcomes are another matter: since silence must be earned (docs/decisions/016-earned-silence.md), a run that lost
nothing is ``held`` only if fresh clients wrote and read the log after healing. Nobody tried that then, so what was held
is unknown now; what was lost or broken is so still.
"""

import json
import tarfile
from pathlib import Path
from typing import Final

import msgspec
import pytest

from checkers.local import check_one as verdict_on
from checkers.verdicts.judgement import judge as judgement_on
from checkers.verdicts.outcome import Outcome
from checkers.verdicts.verdict import Verdict
from harness.records.run_record import read_record

#: The anomalies that 0.1.0 knew. What later versions find beside them is no news about these histories.
OF_0_1: Final = {
    "lost-write", "unseen", "duplicate", "inconsistent-offsets", "phantom-read", "corrupt-read", "G1a",
    "precommitted-read", "nonmonotonic-poll", "poll-skip", "nonmonotonic-send", "int-nonmonotonic-poll",
    "int-poll-skip", "int-nonmonotonic-send", "int-send-skip", "G0", "G0-realtime", "G1c", "G1c-realtime",
    "divergent-replicas", "empty-transaction-graph",
}  # fmt: skip
ARCHIVE = Path(__file__).parent / "recorded" / "histories.tar.xz"
RUNS = 200


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    target = tmp_path_factory.mktemp("recorded")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target)  # noqa: S202 - our own; filters came with 3.11.4
    return sorted(path.parent for path in target.glob("*/run.json"))


def as_0_1_knew(verdict: Verdict) -> tuple[Verdict, bool]:
    """The verdict without the anomalies of later versions, and whether there was one."""
    counts = {name: count for name, count in verdict.counts.items() if name in OF_0_1}
    anomalies = {name: findings for name, findings in verdict.anomalies.items() if name in OF_0_1}
    return msgspec.structs.replace(verdict, counts=counts, anomalies=anomalies), len(counts) < len(verdict.counts)


def test_two_hundred_histories_are_judged_as_before(recorded: list[Path]) -> None:
    assert len(recorded) == RUNS
    lossy = 0
    for run in recorded:
        expected = json.loads((run / "expected.json").read_text())
        whole = verdict_on(run)
        assert "unfounded-out-of-order" not in whole.counts, "their clients and brokers were right about each number"
        verdict, later = as_0_1_knew(whole)
        judgement = judgement_on(read_record(run).chosen(), verdict)
        lossy += judgement.lost > 0
        proved = {True: Outcome.BROKEN_PROMISE, False: Outcome.PERMITTED_LOSS if judgement.lost else Outcome.UNKNOWN}
        assert judgement.outcome is proved[bool(judgement.broken)], run.name
        plain = msgspec.to_builtins(msgspec.structs.replace(verdict, history=""), str_keys=True)
        of_before = {name: plain[name] for name in expected["verdict"]}  # later versions say more
        of_before |= {"valid": expected["verdict"]["valid"]} if later else {}
        of_before["delivery"] = {name: plain["delivery"][name] for name in expected["verdict"]["delivery"]}
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
