"""One defect has one identity in all runs that show it; another setting, anomaly, write or mark is another defect."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from checkers.anomalies.lost_write import LostWrite
from checkers.verdicts import copies, promises
from checkers.verdicts.identity import LATER, MATTERING, identity
from checkers.verdicts.judgement import judge
from checkers.verdicts.moments import MarkedMoment
from checkers.verdicts.verdict import Verdict
from tests.checkers.findings import a_finding
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import Scene
from tests.nemesis.receipt_factory import a_receipt
from workloads.settings import Settings

A1 = Settings(acks=1)
STRONG = Settings(min_insync_replicas=2)


def lossy(*, anomaly: str = "lost-write", value: int = 7, **told: Any) -> Verdict:
    """One finding, in a run with a fault."""
    finding = a_finding(anomaly, **{"key": "t-0", "value": value, "messages": [value], "skipped": [value]} | told)
    return Verdict(
        history="",
        valid=False,
        counts={anomaly: 1},
        anomalies={anomaly: [finding]},
        faults=[a_receipt(story=str(value), begun_us=value)],
    )


def together(*verdicts: Verdict) -> Verdict:
    """The findings of all in one run."""
    anomalies = {name: identities for verdict in verdicts for name, identities in verdict.anomalies.items()}
    return Verdict(
        history="", valid=False, counts=dict.fromkeys(anomalies, 1), anomalies=anomalies, faults=verdicts[0].faults
    )


def identity_of(verdict: Verdict, settings: Settings = A1) -> str:
    ((only,),) = judge(settings, verdict).identities.values()
    return only


def test_two_seeds_and_two_scenarios_show_one_defect() -> None:
    first = identity_of(lossy())
    assert len(first) == 12
    assert identity_of(lossy(value=8)) == first


@pytest.mark.parametrize("copy", ["destroyed", "hidden", "unknown", ""])
def test_whether_a_copy_of_what_is_gone_was_still_on_a_disk_is_no_other_defect(copy: str) -> None:
    assert identity_of(lossy(fate=copy)) == identity_of(lossy())
    assert identity_of(lossy(fate="in the log")) != identity_of(lossy())


def test_findings_about_the_same_write_are_one_defect_and_of_another_write_another() -> None:
    looks = [lossy(anomaly=anomaly) for anomaly in ("poll-skip", "unseen", "lost-write")]
    identities = judge(STRONG, together(*looks, lossy(anomaly="corrupt-read", value=8))).identities
    assert identities["poll-skip"] == identities["unseen"] == identities["lost-write"] == [identity_of(lossy(), STRONG)]
    assert (
        identities["corrupt-read"] == [identity_of(lossy(anomaly="corrupt-read"), STRONG)] != identities["lost-write"]
    )
    assert identity_of(lossy(anomaly="unseen"), STRONG) not in identities["lost-write"], "alone it is another one"


def test_what_nothing_permits_does_not_hide_behind_what_the_settings_permit() -> None:
    both = judge(A1, together(lossy(), lossy(anomaly="corrupt-read")))
    assert ([*both.permitted], [*both.broken]) == (["lost-write"], ["corrupt-read"])
    assert both.identities["corrupt-read"] == [identity_of(lossy(anomaly="corrupt-read"))]


def test_findings_that_are_not_listed_go_with_those_that_are() -> None:
    def identities(of: int) -> dict[str, list[str]]:
        run = together(lossy(), lossy(anomaly="inconsistent-offsets", values=[7]))
        run.counts["inconsistent-offsets"] = 1 + of
        run.moments = {"inconsistent-offsets": [MarkedMoment(None, keys=["t-0"])]}
        return judge(STRONG, run).identities

    assert identities(40) == identities(0)


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
    assert identity("lost-write", {**before, **LATER}, "") == identity("lost-write", before, "")
    assert identity("lost-write", {**before, "quorum.required.acks": 2}, "") != identity("lost-write", before, "")


def test_another_anomaly_or_library_or_invariant_is_another_defect() -> None:
    verdicts = [lossy(), lossy(anomaly="duplicate"), lossy(anomaly="broken-invariant", invariant="logs-match")]
    verdicts += [lossy(anomaly="broken-invariant", invariant="candidates-are-complete")]
    verdicts += [lossy(anomaly="wedged-client", client=client) for client in ("java 4.3.1", "librdkafka 2.15.0")]
    assert len({identity_of(verdict) for verdict in verdicts}) == 6
    assert identity_of(lossy(anomaly="wedged-client", client="java 4.3.0")) == identity_of(verdicts[4])


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
