"""Forms of Kafka's nodes: which one a node starts in, what it says of itself, and when features are raised."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.worlds.kafka.administration import UnansweredError
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.members import ClusterMembers
from harness.worlds.kafka.releases import parse_version
from harness.worlds.kafka.succession import Forms, KafkaSuccession, NodeForm

FIRST, NEXT = (Installation(parse_version(version), Path(version)) for version in ("3.9.2", "4.3.1"))
SAYS = "2026-11-26T02:18:57.780 INFO org.apache.kafka.common.utils.AppInfoParser Kafka {}\n"


class Logs:
    """The logs of nodes that start now and then."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._starts, self._begins = directory, dict.fromkeys((0, 100), 1), dict.fromkeys((0, 100), 0)

    def log(self, node: int) -> Path:
        return self._directory / f"node-{node}.log"

    def log_begin(self, node: int) -> int:
        return self._begins[node]

    def starts(self, node: int) -> int:
        return self._starts[node]

    def says(self, node: int, version: str) -> None:
        with self.log(node).open("a") as file:
            file.write(SAYS.format(f"version: {version}") + SAYS.format("commitId: 26b251a451ce941d"))

    def starts_again(self, node: int) -> None:
        self._starts[node] += 1
        self._begins[node] = self.log(node).stat().st_size


class Features:
    """An administration of which only features are asked; ``deaf`` brokers answer nothing."""

    def __init__(self, refuses: str = "", *, deaf: bool = False, forgets: bool = False) -> None:
        self.levels = {"metadata.version": 21, "kraft.version": 0}
        self.raised: list[dict[str, int]] = []
        self._refuses, self._deaf, self._forgets = refuses, deaf, forgets

    def features(self) -> dict[str, int]:
        if self._deaf:
            raise UnansweredError("no broker answered")
        return dict(self.levels)

    def supported_features(self) -> dict[str, int]:
        return {"metadata.version": 30, "kraft.version": 1, "eligible.leader.replicas.version": 1, "group.version": 1}

    def finalize(self, levels: dict[str, int]) -> str:
        self.raised.append(levels)
        if not (self._refuses or self._forgets):
            self.levels |= levels
        return self._refuses

    def configurations(self, kind: str, names: list[str], settings: list[str]) -> dict[str, dict[str, str]]:
        assert kind == "broker"
        return {name: dict.fromkeys(settings, "8") for name in names}


def succession(logs: Any, features: Any = None) -> KafkaSuccession:
    forms, asked = Forms(NodeForm(FIRST), NodeForm(NEXT, {"num.io.threads": "8"})), features or Features()
    return KafkaSuccession(logs, forms, asked, ClusterMembers(logs, asked, lambda: (0,), dynamic=False))


def test_a_node_starts_in_its_first_form_until_it_is_prepared_for_another() -> None:
    forms = Forms(NodeForm(FIRST), NodeForm(NEXT, {"num.io.threads": "8"}))
    nobody: Any = None
    part = KafkaSuccession(nobody, forms, nobody, nobody)
    assert part.prepare(0, "next") == {"wanted": "4.3.1"}
    assert (forms.of(0).release, forms.of(1).release) == (NEXT, FIRST)
    assert forms.of(0).change == {"num.io.threads": "8"}
    assert part.prepare(0, "first") == {"wanted": "3.9.2"}
    assert forms.of(0) == NodeForm(FIRST)


def test_a_node_runs_what_its_own_log_says_since_its_newest_start(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    part = succession(logs)
    assert part.observe(0) == {}
    logs.says(0, "3.9.2")
    logs.says(100, "3.9.2")
    assert part.observe(0) == {"version": "3.9.2", "incarnation": 1}
    logs.starts_again(0)
    assert part.observe(0) == {}
    assert part.observe(100) == {"version": "3.9.2", "incarnation": 1}
    logs.says(0, "4.3.1")
    assert part.observe(0) == {"version": "4.3.1", "incarnation": 2}


def test_features_and_changed_settings_are_asked_for_and_controllers_tell_no_settings(tmp_path: Path) -> None:
    part = succession(Logs(tmp_path))
    levels = {"metadata.version": 21, "kraft.version": 0}
    assert part.describe(0) == {"features": levels, "changed": {"num.io.threads": "8"}}
    assert part.describe(100) == {"features": levels}
    assert part.finalize()["features"] == levels | {"metadata.version": 30, "group.version": 1}


def test_only_features_are_raised_that_are_not_the_settings_or_the_quorums_own() -> None:
    features = Features()
    assert succession(None, features).finalize()["features_before"] == {"metadata.version": 21, "kraft.version": 0}
    assert features.raised == [{"metadata.version": 30, "group.version": 1}]
    succession(None, features).finalize()
    assert len(features.raised) == 1


def test_a_refusal_to_forget_a_broker_is_told_though_nobody_tells_the_features(tmp_path: Path) -> None:
    members: Any = SimpleNamespace(describe=lambda _: {"wiped": {"files": 3}, "refused": "no such broker"})
    deaf: Any = Features(deaf=True)
    part = KafkaSuccession(Logs(tmp_path), Forms(NodeForm(FIRST), NodeForm(NEXT)), deaf, members)
    assert part.describe(0) == {"wiped": {"files": 3}, "refused": "no such broker", "unconfirmed": "no broker answered"}


def test_levels_that_are_refused_or_not_seen_afterwards_are_evidence_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.worlds.kafka.succession.CONFIRM_LIMIT_S", 0.0)
    assert succession(None, Features("metadata.version: no")).finalize()["refused"] == "metadata.version: no"
    assert "were not seen afterwards" in succession(None, Features(forgets=True)).finalize()["unconfirmed"]
    assert succession(None, Features(deaf=True)).finalize() == {"unconfirmed": "no broker answered"}
    assert succession(None, Features(deaf=True)).describe(0) == {"unconfirmed": "no broker answered"}
