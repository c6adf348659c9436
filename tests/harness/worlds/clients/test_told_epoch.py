"""The id and epoch of librdkafka's producer, as its statistics tell them."""

from __future__ import annotations

import json

import pytest

from harness.worlds.clients import told_epoch
from harness.worlds.clients.confluent import PolledProducer, producer_configuration
from harness.worlds.clients.told_epoch import ToldEpoch
from tests.waiting import wait_until
from workloads import ProducerEpoch
from workloads.settings import Settings

NOBODY = ("127.1.2.3:1",)
LIMIT_S = 60.0


def statistics(made_us: int, epoch: int, state: str = "Assigned") -> str:
    eos = {"idemp_state": state, "txn_state": "Ready", "producer_id": 7, "producer_epoch": epoch}
    return json.dumps({"name": "one", "ts": made_us, "eos": eos})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> ToldEpoch:
    """A producer for which a call was made, and ended, at 100 µs."""
    monkeypatch.setattr(told_epoch, "_now_us", lambda: 100)
    told = ToldEpoch()
    told.on_statistics(statistics(99, 3))
    assert told.present is None
    with told.changing():
        told.on_statistics(statistics(100, 3))
        assert told.present is None
    return told


def test_statistics_count_that_were_made_after_the_last_call_that_may_change_them(told: ToldEpoch) -> None:
    told.on_statistics(statistics(99, 3))
    assert told.present is None
    told.on_statistics(statistics(101, 4))
    assert told.present == ProducerEpoch(7, 4)
    with told.changing():
        assert told.present is None


def test_after_a_call_that_failed_nothing_is_told(told: ToldEpoch) -> None:
    with pytest.raises(OSError, match="no answer"), told.changing():
        raise OSError("no answer")
    told.on_statistics(statistics(101, 4))
    assert told.present is None


@pytest.mark.parametrize(
    "text", [statistics(101, -1, "WaitPID"), statistics(101, -1), '{"ts": 101}', '{"ts": "101"}', "no JSON"]
)
def test_statistics_without_an_id_that_may_be_used_tell_nothing(told: ToldEpoch, text: str) -> None:
    before = told.present
    told.on_statistics(text)
    assert told.present is before


def test_the_installed_library_tells_them_and_its_clock_is_ours() -> None:
    """Against the brokers that librdkafka imitates, in this process."""
    imitated = {"test.mock.num.brokers": 1}
    producer = PolledProducer(producer_configuration(Settings(enable_idempotence=True), NOBODY, 0, "one") | imitated)
    try:
        assert producer.epoch.present is None
        with producer.epoch.changing():
            producer.producer.init_transactions(LIMIT_S)
        wait_until(lambda: producer.epoch.present is not None, "it is told", LIMIT_S)
        present = producer.epoch.present
        assert present is not None
        assert present.producer_epoch >= 0
    finally:
        producer.close()
