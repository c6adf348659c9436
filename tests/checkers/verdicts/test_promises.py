"""A table of claims: the anomalies that settings permit. Letters S.. are scripted stories."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from checkers.verdicts.promises import NEVER, Promise, promise, promise_under
from checkers.verdicts.receipts import FaultSeen, faults_possible, faults_seen, latest_receipts
from nemesis.cluster import CLIENTS
from nemesis.receipts import Receipt
from tests.checkers.receipts import a_receipt
from workloads.settings import Settings

KILL = (FaultSeen("kill"),)
PAUSE = (FaultSeen("pause"),)
CUT = (FaultSeen("partition"),)
CLIENT_CUT = (FaultSeen("partition", clients_only=True),)
POWER = (FaultSeen("powerloss", nodes=(1,)), FaultSeen("partition"))
ONE_POWER = (FaultSeen("powerloss", nodes=(1,)),)
LIED = (FaultSeen("lyingdisk", nodes=(1,)), FaultSeen("powerloss", nodes=(1,), took_flushed=True))
WIPE = (FaultSeen("wipedisk", nodes=(1,)), FaultSeen("partition"))
ONE_WIPE = (FaultSeen("wipedisk", nodes=(1,)),)
ONE_CORRUPT = (FaultSeen("corruptrecord", nodes=(2,)),)
KILL_2 = (FaultSeen("kill", nodes=(2,)),)
FULL = (FaultSeen("fulldisk", nodes=(1,)), FaultSeen("died", nodes=(1,)))
SLOW = (FaultSeen("slowdisk", nodes=(1, 2)),)
NONE: tuple[FaultSeen, ...] = ()

A0 = Settings(acks=0)
A1 = Settings(acks=1)
ALL_1 = Settings()
ALL_2 = Settings(min_insync_replicas=2)
ALL_1_UNCLEAN = Settings(unclean_leader_election_enable=True)
ALL_2_UNCLEAN = Settings(min_insync_replicas=2, unclean_leader_election_enable=True)
ALL_2_FLUSHED = Settings(min_insync_replicas=2, flush_messages=1)
ALL_3_UNCLEAN = Settings(min_insync_replicas=3, unclean_leader_election_enable=True)
ALL_2_ELR = Settings(min_insync_replicas=2, eligible_leader_replicas=True)
ALL_2_ELR_FLUSHED = Settings(min_insync_replicas=2, eligible_leader_replicas=True, flush_messages=1)
ALL_3_ELR = Settings(min_insync_replicas=3, eligible_leader_replicas=True)
NO_EPOCHS = Settings(min_insync_replicas=2, broker_epochs=False)
Q2_ISR = Settings(quorum_required_acks=2)
Q2_WRITTEN = Settings(quorum_required_acks=2, leader_election="largest-log-end")
Q2_CORRECTED = Settings(quorum_required_acks=2, leader_election="largest-epoch-and-log-end")
MAJORITY = Settings(commit_rule="majority", leader_election="largest-epoch-and-log-end")
OLD = Settings(min_insync_replicas=2, truncation="high-watermark")


def permitted(settings: Settings, faults: tuple[FaultSeen, ...], anomaly: str) -> bool:
    return promise(settings, faults).about(anomaly).permitted


@pytest.mark.parametrize(
    ("settings", "faults", "loss"),
    [
        pytest.param(A0, NONE, True, id="acks 0 promises nothing even without a fault"),
        pytest.param(A0, KILL, True, id="acks 0 under kill"),
        pytest.param(A1, NONE, False, id="acks 1 loses nothing without a fault"),
        pytest.param(A1, KILL, True, id="acks 1 loses the tail of a killed leader (S01)"),
        pytest.param(A1, PAUSE, True, id="acks 1 under pause"),
        pytest.param(A1, CUT, True, id="acks 1 loses a zombie leader's writes (S04)"),
        pytest.param(A1, CLIENT_CUT, False, id="clients cut off move no leader"),
        pytest.param(ALL_1, KILL, False, id="acks all, min ISR 1 holds under kill (S06)"),
        pytest.param(ALL_1, PAUSE, False, id="acks all, min ISR 1 holds under pause"),
        pytest.param(ALL_1, CUT, False, id="acks all, min ISR 1 holds under partition (S04)"),
        pytest.param(ALL_2, KILL + PAUSE + CUT, False, id="acks all, min ISR 2 holds under everything at once"),
        pytest.param(ALL_1_UNCLEAN, NONE, False, id="unclean loses nothing without a fault"),
        pytest.param(ALL_1_UNCLEAN, CUT, True, id="unclean election loses (S06, S20)"),
        pytest.param(ALL_2_UNCLEAN, KILL, True, id="min ISR gates the write, not the election (S19)"),
        pytest.param(ALL_3_UNCLEAN, CUT, False, id="a write on every replica survives any election"),
        pytest.param(OLD, KILL, True, id="truncation to the high watermark (S14, S39)"),
        pytest.param(OLD, NONE, False, id="old truncation needs a change of leader"),
        pytest.param(Settings(truncation="kip-101"), CUT, True, id="kip-101 alone (S17)"),
        pytest.param(Settings(truncation="kip-279"), CUT, True, id="kip-279 without fencing of fetches (S17)"),
        pytest.param(Settings(truncation="kip-320"), CUT, False, id="kip-320"),
        pytest.param(Settings(fetch_fencing=False), CUT, True, id="no fencing of fetches (S17)"),
        pytest.param(Settings(isr_join_epoch_rule=False), CUT, True, id="joining the ISR on a stale watermark (S18)"),
        pytest.param(
            Settings(strict_min_isr=False), KILL, False, id="strict min ISR guards reads, not acknowledgements"
        ),
        pytest.param(
            Settings(broker_epochs=False), KILL, False, id="broker epochs matter once a disk was emptied (S19)"
        ),
        pytest.param(ALL_2, POWER, True, id="min ISR 2 does not survive the last replica's amnesia (S09)"),
        pytest.param(ALL_2, ONE_POWER * 2, True, id="two losses of power may be of all that had it (S11)"),
        pytest.param(ALL_2, ONE_POWER, False, id="one loss of power and nothing else leaves the others (S10)"),
        pytest.param(ALL_2, ONE_POWER + CLIENT_CUT, False, id="clients cut off take no replica out of sync"),
        pytest.param(A1, ONE_POWER, True, id="acks 1 loses the tail of a leader without power"),
        pytest.param(Settings(replication_factor=1), ONE_POWER, True, id="the only copy is gone with its power"),
        pytest.param(ALL_2_FLUSHED, POWER * 3, False, id="flush.messages=1 keeps what was acknowledged (S09, S11)"),
        pytest.param(ALL_2_FLUSHED, WIPE, True, id="flush.messages=1 does not help an emptied disk (S08)"),
        pytest.param(ALL_2, WIPE, True, id="min ISR 2 does not survive the last replica's empty disk (S08)"),
        pytest.param(ALL_2, ONE_WIPE, False, id="one emptied disk and nothing else leaves the others"),
        pytest.param(ALL_2_FLUSHED, LIED + CUT, True, id="flush.messages=1 does not help where a disk lies (S33)"),
        pytest.param(ALL_2_FLUSHED, LIED[:1] + POWER, False, id="a lie that nobody's power loss brought to light"),
        pytest.param(ALL_2, ONE_CORRUPT, False, id="one damaged record and nothing else leaves the others"),
        pytest.param(ALL_2, ONE_CORRUPT + KILL_2, True, id="a damaged record and a death may be of all that had it"),
        pytest.param(
            ALL_2_FLUSHED, ONE_CORRUPT + CUT, True, id="flush.messages=1 does not help a damaged record (S34)"
        ),
        pytest.param(NO_EPOCHS, ONE_WIPE, True, id="without broker epochs an empty leader may go on leading (S36)"),
        pytest.param(ALL_2_ELR, WIPE, False, id="eligible leaders outlive an emptied disk (S08)"),
        pytest.param(ALL_2_ELR, POWER, False, id="eligible leaders outlive one loss of power (S09)"),
        pytest.param(ALL_2_ELR, ONE_CORRUPT + CUT + PAUSE, False, id="eligible leaders outlive a damaged record (S34)"),
        pytest.param(ALL_2_ELR, WIPE * 3, False, id="eligible leaders outlive the same disk emptied again and again"),
        pytest.param(ALL_2_ELR, WIPE + SLOW, False, id="slow disks strike nobody off the lists"),
        pytest.param(ALL_2_ELR, WIPE + KILL_2, True, id="a killed broker is struck off like an emptied one"),
        pytest.param(ALL_2_ELR, WIPE + KILL, True, id="a kill of nobody knows whom may be of the other that had it"),
        pytest.param(
            ALL_2_ELR, ONE_WIPE + ONE_CORRUPT, True, id="two destroyed copies are too many for min ISR 2 (S25)"
        ),
        pytest.param(ALL_2_ELR_FLUSHED, ONE_WIPE + ONE_CORRUPT, True, id="flushing does not make it fewer (S25)"),
        pytest.param(
            ALL_2_ELR_FLUSHED, POWER * 3 + KILL_2, False, id="flushed, no loss of power is too many (S11, S15)"
        ),
        pytest.param(ALL_2_ELR, POWER + KILL_2, True, id="unflushed, two unclean stops are too many (S11)"),
        pytest.param(ALL_3_ELR, ONE_WIPE + KILL_2, False, id="min ISR 3 keeps one of three eligible"),
        pytest.param(Settings(eligible_leader_replicas=True), WIPE, True, id="min ISR 1 keeps nobody else eligible"),
        pytest.param(
            Settings(min_insync_replicas=2, eligible_leader_replicas=True, unclean_leader_election_enable=True),
            WIPE,
            True,
            id="unclean elections look at no list",
        ),
        pytest.param(Settings(acks=1, eligible_leader_replicas=True), WIPE, True, id="acks 1 has no list either"),
        pytest.param(ALL_2, FULL + CUT + KILL, False, id="a full disk keeps what it has"),
        pytest.param(ALL_1, SLOW + KILL + PAUSE, False, id="a slow disk keeps what it has"),
        pytest.param(A1, SLOW, True, id="acks 1 loses a slow leader's tail"),
        pytest.param(Q2_ISR, KILL, True, id="a quorum's acknowledgements are lost by an election of the ISR (S27)"),
        pytest.param(Q2_WRITTEN, CUT, True, id="KIP-250 as written: a deposed leader's log may be longer (S28)"),
        pytest.param(Q2_WRITTEN, NONE, False, id="KIP-250 without a change of leader"),
        pytest.param(Q2_CORRECTED, KILL + PAUSE + CUT, False, id="KIP-250 with elections by leader epoch and log end"),
        pytest.param(Q2_CORRECTED, ONE_POWER, True, id="one of two copies without power (S11)"),
        pytest.param(Q2_CORRECTED, ONE_WIPE, True, id="one of two copies emptied"),
        pytest.param(MAJORITY, KILL + PAUSE + CUT, False, id="a majority under everything at once"),
        pytest.param(MAJORITY, POWER * 3, False, id="a majority flushes before it answers (S11, S15)"),
        pytest.param(MAJORITY, ONE_WIPE + KILL, True, id="a majority of which a disk is emptied (S25)"),
        pytest.param(Settings(flush_messages=2), POWER, True, id="flushing every second record leaves one behind"),
        pytest.param(Settings(acks=1, flush_messages=1), POWER, True, id="acks 1 loses with flushing as by a kill"),
    ],
)
def test_loss_is_permitted_exactly_where_a_rule_permits_it(
    settings: Settings, faults: tuple[FaultSeen, ...], loss: bool
) -> None:
    assert permitted(settings, faults, "lost-write") is loss
    assert permitted(settings, faults, "unseen") is loss
    assert promise(settings, faults).permits_loss is loss


@pytest.mark.parametrize("anomaly", ["poll-skip", "nonmonotonic-poll"])
@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        pytest.param(A0, False, id="acks 0 loses what was never readable"),
        pytest.param(A1, False, id="acks 1 loses above the high watermark only"),
        pytest.param(ALL_2, False, id="acks all"),
        pytest.param(ALL_2_UNCLEAN, True, id="an unclean election truncates what was read (S20)"),
        pytest.param(ALL_3_UNCLEAN, False, id="readable means everywhere with strict min ISR"),
        pytest.param(
            Settings(min_insync_replicas=3, unclean_leader_election_enable=True, strict_min_isr=False),
            True,
            id="before strict min ISR a lonely leader made records readable",
        ),
        pytest.param(OLD, True, id="truncation to the high watermark"),
    ],
)
def test_what_a_consumer_read_changes_only_where_readable_records_are_truncated(
    settings: Settings, changes: bool, anomaly: str
) -> None:
    assert permitted(settings, CUT, anomaly) is changes


def test_a_lost_writes_offset_is_reused_where_producers_were_told_it() -> None:
    assert permitted(A1, KILL, "inconsistent-offsets")
    assert permitted(A1, KILL, "nonmonotonic-send")
    assert not permitted(A0, KILL, "inconsistent-offsets")
    assert not permitted(ALL_1, KILL, "inconsistent-offsets")


@pytest.mark.parametrize(
    ("settings", "duplicates"),
    [
        pytest.param(Settings(enable_idempotence=False), True, id="retries without idempotence (S22)"),
        pytest.param(Settings(enable_idempotence=True), False, id="idempotence"),
        pytest.param(Settings(retries=0), False, id="no retries"),
        pytest.param(
            Settings(enable_idempotence=True, unclean_leader_election_enable=True),
            True,
            id="producer state is truncated with the records",
        ),
    ],
)
def test_duplicates_need_a_retry_that_the_leader_cannot_recognise(settings: Settings, duplicates: bool) -> None:
    assert permitted(settings, KILL, "duplicate") is duplicates


def test_polls_may_look_disordered_only_beside_a_permitted_duplicate() -> None:
    assert promise(ALL_2, KILL).about("poll-skip", duplicates_seen=True).permitted
    assert not promise(ALL_2, KILL).about("poll-skip").permitted
    idempotent = Settings(enable_idempotence=True)
    assert not promise(idempotent, KILL).about("poll-skip", duplicates_seen=True).permitted


def test_a_retry_is_overtaken_only_without_idempotence_and_with_requests_in_flight() -> None:
    assert permitted(Settings(), NONE, "nonmonotonic-send")
    assert not permitted(Settings(enable_idempotence=True), KILL, "nonmonotonic-send")


@pytest.mark.parametrize(
    ("settings", "faults", "may_be"),
    [
        pytest.param(Settings(), NONE, True, id="five requests in flight, even without a fault (S23)"),
        pytest.param(Settings(retries=0), NONE, True, id="without retries two batches may go to two leaders"),
        pytest.param(Settings(max_in_flight=1), KILL, False, id="one request in flight"),
        pytest.param(Settings(max_in_flight=1, acks=1), KILL, False, id="a lost write has no place"),
        pytest.param(Settings(max_in_flight=1, acks=0), NONE, True, id="nobody answers"),
        pytest.param(Settings(enable_idempotence=True), KILL, False, id="idempotence"),
        pytest.param(
            Settings(enable_idempotence=True, unclean_leader_election_enable=True),
            KILL,
            True,
            id="producer state is truncated with the records",
        ),
    ],
)
def test_acknowledged_writes_of_a_producer_change_places_only_where_batches_may_overtake(
    settings: Settings, faults: list[FaultSeen], may_be: bool
) -> None:
    assert permitted(settings, faults, "reordered") is may_be


@pytest.mark.parametrize("anomaly", [*NEVER, "an-anomaly-of-tomorrow"])
def test_corruption_invention_and_the_unknown_are_never_permitted(anomaly: str) -> None:
    everything = Settings(acks=0, unclean_leader_election_enable=True, truncation="high-watermark")
    assert not permitted(everything, KILL + CUT + POWER, anomaly)


def test_producers_may_always_interleave() -> None:
    assert permitted(Settings(enable_idempotence=True), NONE, "int-send-skip")


@pytest.mark.parametrize("anomaly", ["divergent-replicas", "divergent-reads"])
def test_replicas_diverge_only_under_old_rules_or_after_a_destroyed_copy(anomaly: str) -> None:
    assert permitted(OLD, KILL, anomaly)
    assert permitted(ALL_2, POWER, anomaly)
    assert not permitted(ALL_1_UNCLEAN, CUT, anomaly)


def test_every_claim_has_words_and_a_source() -> None:
    promises: list[Promise] = [
        promise(settings, faults)
        for settings in (A0, A1, ALL_1, ALL_2_UNCLEAN, ALL_3_UNCLEAN, OLD)
        for faults in (NONE, KILL, CLIENT_CUT, POWER)
    ]
    reasons = [reason for promised in promises for claim in promised.claims for reason in claim.reasons]
    assert all(claim.reasons for promised in promises for claim in promised.claims)
    assert all(reason.text and reason.source for reason in reasons)
    assert promise(A1, KILL).sentence().startswith("Acknowledged writes may be lost: acks=1")
    assert promise(ALL_2, KILL).sentence().startswith("No acknowledged write may be lost: every in-sync replica")


def test_a_reassignment_brings_replicas_that_never_had_the_write() -> None:
    reassigned = (FaultSeen("reassign", nodes=(1,)),)
    assert not promise(ALL_3_UNCLEAN, KILL).permits_loss
    assert promise(ALL_3_UNCLEAN, reassigned).permits_loss
    assert promise(ALL_3_UNCLEAN, reassigned).about("nonmonotonic-poll").permitted
    assert not promise(ALL_2, reassigned).permits_loss


def test_a_planned_move_is_a_change_of_leader_like_any_other() -> None:
    moved = (FaultSeen("moveleader", nodes=(1,)),)
    assert promise(A1, moved).permits_loss
    assert not promise(ALL_2, moved).permits_loss
    assert not promise(ALL_3_UNCLEAN, moved).permits_loss


def test_the_missed_epoch_is_a_defect_and_weakens_no_promise() -> None:
    for settings in (ALL_1, ALL_2, ALL_2_ELR):
        for faults in (KILL, CUT, (FaultSeen("moveleader", nodes=(1,)), *CUT, *KILL)):
            as_kafka = promise(dataclasses.replace(settings, missed_epoch="kafka"), faults)
            assert as_kafka == promise(settings, faults)
            assert not as_kafka.permits_loss


def seen(*receipts: Receipt) -> tuple[FaultSeen, ...]:
    return faults_seen(latest_receipts(receipts))


def test_a_receipt_without_evidence_is_no_fault() -> None:
    assert seen(a_receipt(took_effect=False)) == ()
    assert seen(a_receipt(targets=[1])) == (FaultSeen("kill", nodes=(1,)),)


@pytest.mark.parametrize(
    ("evidence", "possible"),
    [
        ({}, False),
        ({"1": {"refused": "no"}}, False),
        ({"1": {"unconfirmed": "nobody answered"}}, True),
        ({"1": {"exit": "signal 9"}}, True),
    ],
    ids=["nothing seen", "refused", "no answer", "one of two brokers"],
)
def test_a_promise_reckons_with_what_may_have_happened(evidence: dict[str, Any], possible: bool) -> None:
    details = [a_receipt(took_effect=False, fault="moveleader", targets=[1, 2], begin_evidence=evidence)]
    assert faults_seen(latest_receipts(details)) == ()
    assert promise(A1, faults_possible(latest_receipts(details))).permits_loss == possible


@pytest.mark.parametrize("kind", ["wipedisk", "corruptrecord", "powerloss"])
@pytest.mark.parametrize(("away", "loss"), [({}, False), ({"t-0": [2]}, True)], ids=["whole", "one had fallen behind"])
def test_a_single_destroyed_copy_spares_the_others_only_if_all_were_in_sync(
    kind: str, away: dict[str, Any], loss: bool
) -> None:
    receipts = seen(a_receipt(fault=kind, targets=[1], out_of_sync=away))
    assert promise(ALL_2, receipts).permits_loss == loss
    assert not promise(ALL_2, seen(a_receipt(targets=[1], out_of_sync=away))).permits_loss, "a kill destroys nothing"


def test_a_record_that_was_not_damaged_leaves_a_possible_kill() -> None:
    hit = {"fault": "corruptrecord", "took_effect": False, "less": "kill", "begin_evidence": {"1": {"exit": "9"}}}
    possible = faults_possible(latest_receipts([a_receipt(targets=[1], **hit), a_receipt(sequence=1, targets=[2])]))
    assert [fault.kind for fault in possible] == ["kill", "kill"]
    assert promise(A1, possible).permits_loss
    assert not promise(ALL_2, possible).permits_loss


def test_begin_and_end_of_a_fault_are_one_fault_and_the_end_tells_more() -> None:
    begin, end = a_receipt(mark="begin"), a_receipt(moved={"t-0": {"leader_epoch": [1, 2]}})
    (merged,) = latest_receipts([begin, end])
    assert merged.moved == {"t-0": {"leader_epoch": (1, 2)}}
    assert len(latest_receipts([begin, end, a_receipt(sequence=1)])) == 2


def test_a_cut_of_client_links_is_told_from_a_cut_inside_the_cluster() -> None:
    clients = a_receipt(fault="partition", links=[[CLIENTS, 0], [0, CLIENTS]])
    inside = a_receipt(fault="partition", links=[[CLIENTS, 0], [0, 1]], sequence=1)
    moved = replace(clients, sequence=2, moved={"t-0": {"leader": (0, 1), "leader_epoch": (1, 2)}})
    shrunk = replace(clients, sequence=3, moved={"t-0": {"isr": ((0, 1), (0,))}})
    assert [fault.clients_only for fault in seen(clients, inside, moved, shrunk)] == [True, False, False, True]


def test_a_disk_lied_where_a_loss_of_power_took_what_was_flushed() -> None:
    honest = {"fault": "powerloss", "begin_evidence": {"1": {"exit": "signal 9", "lost": {"t-0": 3}}}}
    lied = {"fault": "powerloss", "begin_evidence": {"1": {"lost": {"t-0": 3}, "lost_flushed": {"t-0": 2}}}}
    assert [fault.took_flushed for fault in seen(a_receipt(**honest), a_receipt(**lied, sequence=1))] == [False, True]


@pytest.mark.parametrize(("settings", "replicas"), [(ALL_2, "every in-sync replica"), (MAJORITY, "every election")])
def test_the_reason_for_reads_names_who_has_what_is_below_the_high_watermark(settings, replicas):
    """A number of replicas commits, so an in-sync replica may lack it: who elects a leader has one that does not."""
    for anomaly in ("poll-skip", "inconsistent-offsets", "divergent-replicas", "divergent-reads"):
        assert replicas in promise(settings, KILL).about(anomaly).why()


@pytest.mark.parametrize(
    ("settings", "families", "permits"),
    [
        (Settings(min_insync_replicas=2), ["kill", "pause", "partition"], False),
        (Settings(min_insync_replicas=2), ["kill", "power"], True),
        (Settings(flush_messages=1), ["power"], False),
        (Settings(flush_messages=1), ["lying-disk"], True),
        (Settings(acks=1), ["client-crash"], False),
        (Settings(acks=1), ["move"], True),
    ],
)
def test_what_is_promised_at_worst_before_anything_ran(settings: Settings, families: list[str], permits: bool) -> None:
    assert promise_under(settings, families).permits_loss is permits


@pytest.mark.parametrize("anomaly", ["torn-transaction", "aborted-read"])
def test_after_a_late_request_a_mixed_transaction_breaks_the_promise_and_the_known_gap_is_named(anomaly: str) -> None:
    committed = Settings(isolation_level="read_committed")
    late, other = (promise(committed, (FaultSeen(kind),)).about(anomaly) for kind in ("holdconnections", "partition"))
    assert (late.permitted, other.permitted) == (False, False)
    assert "KAFKA-17754" in " ".join(reason.source for reason in late.reasons)
    assert "KAFKA-17754" not in " ".join(reason.source for reason in other.reasons)


@pytest.mark.parametrize(
    ("settings", "reasons"),
    [
        (ALL_2, 0),
        (Settings(commit_mode="before-processing"), 1),
        (Settings(auto_offset_reset="latest"), 1),
        (Settings(commit_mode="before-processing", auto_offset_reset="latest"), 2),
    ],
)
def test_a_group_may_skip_what_it_commits_first_and_what_was_there_before_it_came(
    settings: Settings, reasons: int
) -> None:
    claim = promise(settings, NONE).about("group-skip")
    assert (claim.permitted, len(claim.reasons)) == (reasons > 0, reasons or 1)
