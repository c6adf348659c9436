"""One defect has one identity in all runs that show it; another story, setting, anomaly or fate is another defect."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

from checkers.anomalies.lost_write import LostWrite
from checkers.verdicts import copies, promises
from checkers.verdicts.identity import LATER, MATTERING, identity
from checkers.verdicts.judgement import judge
from checkers.verdicts.verdict import Verdict
from tests.checkers.findings import a_finding
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import Scene
from tests.nemesis.receipt_factory import a_receipt
from workloads.settings import Settings

A1 = Settings(acks=1)


def lossy(
    times_us: tuple[int | None, ...] = (1_500_000,), *, anomaly: str = "lost-write", fate: str = "", **receipt: Any
) -> Verdict:
    """One finding at each of the moments, in a run with a fault from second 1 to second 2 and another far later."""
    later = a_receipt(sequence=1, group=1, story="pause-all", fault="pause", begun_us=7_000_000, ended_us=8_000_000)
    return Verdict(
        history="",
        valid=False,
        counts={anomaly: len(times_us)},
        anomalies={anomaly: [a_finding(anomaly, key="t-0", value=n, fate=fate) for n in times_us]},
        times_us={anomaly: list(times_us)},
        faults=[a_receipt(**receipt), later],
    )


def identity_of(verdict: Verdict, settings: Settings = A1) -> str:
    ((only,),) = judge(settings, verdict).identities.values()
    return only


def test_two_seeds_of_one_story_show_one_defect() -> None:
    first = identity_of(lossy())
    assert len(first) == 12
    other_nodes_and_times = lossy((2_100_000,), targets=(2,), begun_us=2_000_000, ended_us=3_000_000, role="node 2")
    assert identity_of(other_nodes_and_times) == first


def test_a_write_acknowledged_just_before_the_fault_is_lost_to_it() -> None:
    assert identity_of(lossy((900_000,))) == identity_of(lossy((1_500_000,)))


def test_another_story_or_kind_of_fault_is_another_defect() -> None:
    different = {
        identity_of(lossy()),
        identity_of(lossy(story="leader-behind")),
        identity_of(lossy(fault="powerloss")),
        identity_of(lossy((7_500_000,))),
    }
    assert len(different) == 4


def test_another_setting_that_a_promise_depends_on_is_another_defect_and_a_timeout_is_not() -> None:
    settings = [A1, Settings(acks=0), Settings(min_insync_replicas=2), Settings(unclean_leader_election_enable=True)]
    settings += [Settings(acks=1, retries=0), Settings(acks=1, max_in_flight=1)]
    settings += [Settings(acks=1, planted_bug="acknowledge-after-append")]
    assert len({identity_of(lossy(), variant) for variant in settings}) == 7
    assert identity_of(lossy(), Settings(acks=1, retries=3)) == identity_of(lossy())
    assert identity_of(lossy(), Settings(acks=1, broker_session_timeout_ms=3_000)) == identity_of(lossy())


def test_every_setting_that_promises_read_is_part_of_it() -> None:
    trees = [ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")) for module in (promises, copies)]
    fields = {field.name: field.metadata["name"] for field in dataclasses.fields(Settings)}
    nodes = [node for tree in trees for node in ast.walk(tree)]
    read = {fields[node.attr] for node in nodes if isinstance(node, ast.Attribute) and node.attr in fields}
    assert {name for name in read if not name.endswith(".ms")} <= {*MATTERING, *LATER}, "times decide only what shows"
    assert len(read) > 8


def test_a_setting_that_came_later_leaves_identities_as_they_were_where_it_changes_nothing() -> None:
    before = {"acks": "all"}
    assert identity("lost-write", {**before, **LATER}, [], "") == identity("lost-write", before, [], "")
    assert identity("lost-write", {**before, "quorum.required.acks": 2}, [], "") != identity(
        "lost-write", before, [], ""
    )


def test_another_anomaly_or_fate_of_the_copies_is_another_defect() -> None:
    verdicts = [lossy(), lossy(fate="destroyed"), lossy(fate="hidden"), lossy(anomaly="duplicate")]
    assert len({identity_of(verdict) for verdict in verdicts}) == 4


def test_a_fault_without_effect_is_no_part_of_it() -> None:
    failed = lossy(story="other", took_effect=False)
    assert identity_of(failed) == identity_of(lossy((None,), story="other", took_effect=False))
    assert identity_of(failed) != identity_of(lossy())


def test_findings_of_several_defects_have_several_identities_the_first_findings_first() -> None:
    verdict = lossy((7_500_000, 1_500_000, 1_600_000))
    (names,) = judge(A1, verdict).identities.values()
    assert names == [identity_of(lossy((7_500_000,))), identity_of(lossy())]


def test_a_line_of_an_earlier_version_has_no_moments_and_an_identity() -> None:
    verdict = lossy()
    verdict.times_us = {}
    assert len(identity_of(verdict)) == 12


def test_kernels_say_when_the_lost_write_was_acknowledged() -> None:
    scene = Scene()
    scene.send(0, 0)
    scene.send(1, 0, process=2)
    scene.poll((0, 1))
    verdict = judge_events(scene.events)
    (finding,) = verdict.findings(LostWrite)
    acknowledged = [event.time_us for event in scene.events][finding.writer.op_pos]
    assert verdict.times_us["lost-write"] == [acknowledged]
    assert all(len(verdict.times_us[name]) == len(findings) for name, findings in verdict.anomalies.items())
