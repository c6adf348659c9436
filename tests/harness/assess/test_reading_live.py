"""Reading a cluster that runs, from an administration that answers as brokers do."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

import pytest

from harness.assess import live
from harness.assess.configuration import Cluster, Now
from harness.assess.live import TOPICS_A_REQUEST, _read
from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.worlds.hosts.ports import Ports
from harness.worlds.kafka import reaching
from harness.worlds.kafka.administration import ConfiguredValue, UnansweredError
from harness.worlds.kafka.releases import Version
from nemesis.cluster import PartitionView

UNCLEAN = "unclean.leader.election.enable"


class Answers:
    """Two brokers and some topics; what is in ``hidden`` our user may not read."""

    def __init__(self, topics: int = 1, hidden: Sequence[str] = (), releases: Sequence[int] = (3, 3)) -> None:
        self.names = [f"t{number}" for number in range(topics)]
        self.hidden, self.releases = hidden, releases
        self.asked: list[int] = []

    def racks(self) -> dict[int, str]:
        return {1: "a", 2: "b"}

    def topics(self) -> dict[str, list[PartitionView]]:
        whole = PartitionView(leader=1, leader_epoch=0, isr=(1, 2), replicas=(1, 2))
        gone = PartitionView(leader=None, leader_epoch=0, isr=(), replicas=(2,))
        return {name: [whole, gone] for name in self.names}

    def features(self) -> dict[str, int]:
        return {"metadata.version": 29}

    def release(self, broker: int) -> Version:
        return Version(4, self.releases[broker - 1], 0)

    def configured(self, kind: str, names: Sequence[str], _: Sequence[str]) -> dict[str, dict[str, ConfiguredValue]]:
        if kind in self.hidden:
            return {}
        if kind == "broker":
            return {names[0]: self.of_broker(names[0])}
        self.asked.append(len(names))
        return {name: {"min.insync.replicas": ConfiguredValue("2", "DYNAMIC_TOPIC_CONFIG")} for name in names}

    def of_broker(self, number: str) -> dict[str, ConfiguredValue]:
        return {
            "log.retention.hours": ConfiguredValue(number, "STATIC_BROKER_CONFIG"),
            "broker.session.timeout.ms": ConfiguredValue("9000", "STATIC_BROKER_CONFIG"),
        }


def test_topics_brokers_and_features_are_read() -> None:
    cluster = _read(Answers(), ["b:1"], Progress())  # type: ignore[arg-type]
    (topic,) = cluster.topics
    assert (topic.partitions, topic.replicas, topic.racks) == (2, 1, 1)
    assert topic.settings == {"min.insync.replicas": "2"}
    assert topic.now == Now(leaderless=1, behind=1, in_sync=0)
    assert cluster.settings["broker.session.timeout.ms"] == "9000"
    assert cluster.differing == {"retention.ms": ("3600000", "7200000")}
    assert cluster.settings["log.retention.ms"] == "3600000"
    assert cluster.release is not None
    assert cluster.release.words == "4.3"
    assert not cluster.unread


class Sourced(Answers):
    """The same, whose brokers have these settings, and whose topics have the same of unclean elections as brokers."""

    def __init__(self, settings: Mapping[str, tuple[str, str]], of_topics: str = "STATIC_BROKER") -> None:
        super().__init__()
        self.settings, self.of_topics = settings, of_topics

    def configured(
        self, kind: str, names: Sequence[str], settings: Sequence[str]
    ) -> dict[str, dict[str, ConfiguredValue]]:
        if kind == "topic" and UNCLEAN in self.settings:
            shown = ConfiguredValue(self.settings[UNCLEAN][0], f"{self.of_topics}_CONFIG")
            return {name: {UNCLEAN: shown} for name in names}
        return super().configured(kind, names, settings)

    def of_broker(self, number: str) -> dict[str, ConfiguredValue]:
        return {
            name: ConfiguredValue(value.format(number), f"{source}_CONFIG")
            for name, (value, source) in self.settings.items()
        }


def of_unclean_elections(answers: Answers) -> tuple[str, bool]:
    """The value of unclean elections that counts, and whether it is known."""
    cluster = _read(answers, ["b:1"], Progress())  # type: ignore[arg-type]
    (topic,) = cluster.topics
    return cluster.setting_of(topic, UNCLEAN), not topic.not_understood


@pytest.mark.parametrize(
    ("roles", "value", "source", "of_topics", "answer"),
    [
        ("broker", "true", "STATIC_BROKER", "STATIC_BROKER", ("false", False)),
        ("broker", "false", "STATIC_BROKER", "STATIC_BROKER", ("false", True)),
        ("broker", "false", "DEFAULT", "DEFAULT", ("false", True)),
        ("broker", "true", "DYNAMIC_DEFAULT_BROKER", "DYNAMIC_DEFAULT_BROKER", ("true", True)),
        ("broker", "true", "STATIC_BROKER", "DYNAMIC_TOPIC", ("true", True)),
        ("broker,controller", "true", "STATIC_BROKER", "STATIC_BROKER", ("true", True)),
        ("broker,controller", "true", "DYNAMIC_BROKER", "DYNAMIC_BROKER", ("true", True)),
    ],
)
def test_what_controllers_apart_decide_is_not_read_from_brokers(
    *, roles: str, value: str, source: str, of_topics: str, answer: tuple[str, bool]
) -> None:
    settings = {"process.roles": (roles, "STATIC_BROKER"), UNCLEAN: (value, source)}
    assert of_unclean_elections(Sourced(settings, of_topics)) == answer


def test_brokers_that_run_and_differ_are_judged_by_the_worst() -> None:
    cluster = _read(Sourced({"min.insync.replicas": ("{}", "DYNAMIC_BROKER")}), ["b:1"], Progress())  # type: ignore[arg-type]
    assert cluster.settings["min.insync.replicas"] == "1"
    assert cluster.differing == {"min.insync.replicas": ("1", "2")}


class OneAway(Answers):
    """The same, of which one broker does not run."""

    def racks(self) -> dict[int, str]:
        return {1: "a"}


def test_a_broker_that_topics_name_and_that_does_not_run_is_seen() -> None:
    cluster = _read(OneAway(), ["b:1"], Progress())  # type: ignore[arg-type]
    (topic,) = cluster.topics
    assert (topic.now.absent, topic.racks) == ((2,), None)


class OneSilent(Answers):
    """The same, of which one broker died just now: the cluster has not noticed yet."""

    silent = (2,)

    def release(self, broker: int) -> Version:
        if broker in self.silent:
            raise UnansweredError("no broker answered")
        return super().release(broker)


def test_a_broker_that_died_just_now_does_not_run_and_the_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _read(OneSilent(), ["b:1"], Progress())  # type: ignore[arg-type]
    (topic,) = cluster.topics
    assert (topic.now.absent, cluster.brokers) == ((2,), 1)
    assert cluster.settings["log.retention.ms"] == "3600000"
    assert cluster.unread == ("settings of broker 2, which is not dead for the cluster, but does not answer",)
    monkeypatch.setattr(OneSilent, "silent", (1, 2))
    with pytest.raises(UnansweredError):
        _read(OneSilent(), ["b:1"], Progress())  # type: ignore[arg-type]


def test_many_topics_are_asked_for_in_parts() -> None:
    answers = Answers(topics=TOPICS_A_REQUEST + 1)
    _read(answers, ["b:1"], Progress())  # type: ignore[arg-type]
    assert answers.asked == [TOPICS_A_REQUEST, 1]


def test_what_the_user_may_not_read_is_said() -> None:
    cluster = _read(Answers(hidden=("topic", "broker")), ["b:1"], Progress())  # type: ignore[arg-type]
    assert len(cluster.unread) == 2


def test_brokers_of_two_releases_count_as_the_older() -> None:
    cluster = _read(Answers(releases=(3, 2)), ["b:1"], Progress())  # type: ignore[arg-type]
    assert cluster.release is not None
    assert cluster.release.words == "4.2"
    assert cluster.differing["release"] == ("4.2", "4.3")


def test_a_server_that_does_not_answer_is_told_from_a_name_that_does_not_resolve(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ports: Ports
) -> None:
    def silent(*_: object) -> Cluster:
        raise UnansweredError("no broker answered")

    monkeypatch.setattr(live, "_read", silent)
    port, mute_port = (ports.take("127.0.0.1").port for _ in range(2))
    assert exit_code_of(["assess", "--bootstrap", f"127.0.0.1:{port},nowhere.invalid:9092"]) == 69
    said = capsys.readouterr().err
    assert f"127.0.0.1:{port} refuses connections" in said
    assert "the name nowhere.invalid does not resolve" in said
    with socket.create_server(("127.0.0.1", mute_port)):
        assert "does it need TLS or SASL" in reaching.why_silent(f"127.0.0.1:{mute_port}")
        assert exit_code_of(["assess", "--bootstrap", f"127.0.0.1:{mute_port}"]) == 69


def test_a_server_that_hangs_up_on_a_client_without_a_way_in_needs_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], plain_server: str
) -> None:
    def silent(*_: object) -> Cluster:
        raise UnansweredError("no broker answered")

    monkeypatch.setattr(live, "_read", silent)
    assert exit_code_of(["assess", "--bootstrap", plain_server]) == 64
    said = " ".join(capsys.readouterr().err.split())
    assert f"{plain_server} accepts connections but does not let this client in; does it need TLS or SASL" in said
