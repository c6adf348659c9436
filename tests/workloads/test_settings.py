"""Settings that cannot work are refused in one sentence, before anything is started."""

import re
from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest

from workloads.settings import Settings, SettingsError

ROOT = Path(__file__).parents[2]

KIP_250 = {"quorum.required.acks": 2, "leader.election": "largest-log-end"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"min.insync.replica": 2}, 'did you mean "min.insync.replicas"'),
        ({"acks": 2}, 'choose one of "all", 0, 1'),
        ({"acks": True}, 'acks=true is not possible; choose one of "all", 0, 1'),
        ({"acks": date(2026, 1, 2)}, 'acks=2026-01-02 is not possible; choose one of "all", 0, 1'),
        ({"acks": [1, "all"]}, 'acks=[1, "all"] is not possible'),
        ({"acks": None}, "acks=null is not possible"),
        ({"retries": {"a": 1}}, "retries takes a whole number, not a table"),
        ({"acks": "ALL"}, 'acks="ALL" is not possible; choose one of "all", 0, 1'),
        ({"truncation": 1}, 'choose one of "high-watermark", '),
        ({"min.insync.replicas": "two"}, "takes a whole number"),
        ({"unclean.leader.election.enable": 1}, "takes true or false"),
        ({"flush.messages": 0}, "the least is 1"),
        ({"request.timeout.ms": 1}, "the least is 10"),
        ({"request.timeout.ms": 540_000, "delivery.timeout.ms": 600_000}, "the most is 539999"),
        ({"delivery.timeout.ms": 10**12}, "the most is 3600000"),
        ({"replica.lag.time.max.ms": 2**40}, "the most is 3600000"),
        ({"retries": 2**31}, "the most is 2147483647"),
        ({"flush.messages": 2**63}, "the most is 9223372036854775807"),
        ({"min.insync.replicas": 4}, "can never be met with replication.factor=3"),
        ({"quorum.required.acks": 1}, "more than 1 and less than replication.factor=3 (KIP-250)"),
        ({"quorum.required.acks": 3}, "more than 1 and less than replication.factor=3 (KIP-250)"),
        ({"commit.rule": "majority"}, "needs leader.election=largest-epoch-and-log-end and no quorum.required.acks"),
        ({"leader.election": "largest-log-end"}, "needs quorum.required.acks or commit.rule=majority"),
        (
            {**KIP_250, "unclean.leader.election.enable": True},
            "leave out unclean.leader.election.enable and eligible.leader.replicas",
        ),
        ({**KIP_250, "eligible.leader.replicas": True}, "elects by the logs alone"),
        ({"enable.idempotence": True, "acks": 1}, 'needs acks="all"'),
        ({"enable.idempotence": True, "acks": 0}, "take its line out, or exclude the combination with"),
        ({"enable.idempotence": True, "max.in.flight.requests.per.connection": 6}, "at most"),
        ({"linger.ms": 10, "request.timeout.ms": 100, "delivery.timeout.ms": 109}, "request.timeout.ms=110"),
        ({"replica.fetch.wait.max.ms": 500, "replica.lag.time.max.ms": 499}, "leave the ISR"),
        ({"broker.heartbeat.interval.ms": 1_500, "broker.session.timeout.ms": 1_500}, "no broker would stay alive"),
    ],
)
def test_what_cannot_work_is_refused(values: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_mapping(values)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_settings_survive_the_way_through_kafkas_names() -> None:
    chosen = Settings(acks=-1, min_insync_replicas=2, truncation="kip-101", linger_ms=0)
    assert chosen.to_mapping()["acks"] == "all"
    assert Settings.from_mapping(chosen.to_mapping()) == chosen


def test_each_setting_has_a_reader() -> None:
    """One that nothing reads would be accepted, and change nothing. Those of compaction go to topics by their names."""
    files = [file for folder in ("harness", "checkers", "workloads") for file in (ROOT / folder).rglob("*.py")]
    text = "".join(file.read_text(encoding="utf-8") for file in files if file.name != "settings.py")
    read = set(re.findall(r"\.(\w+)", text))
    names = {field.metadata["name"] for field in fields(Settings) if field.name not in read}
    assert names <= set(Settings.scoped("compaction"))
