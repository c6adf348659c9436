"""Whole runs through their phases: the same seed is the same run, and promises hold over many seeds."""

import io

import pytest

from harness.ground.choices import Choices
from harness.runs.run import perform_schedule
from harness.worlds.simulated import SimulatedWorld
from tests.checkers.in_memory import judge_events
from workloads.history import HistoryWriter, export_jsonl
from workloads.operations import EventType, Function

FAMILIES = [("kill",), ("pause",), ("partition",), ("kill", "pause", "partition")]
SAFE = {"acks": -1, "unclean_leader_election_enable": False}


class Events:
    """Keeps what a history needs for these claims."""

    def __init__(self):
        self.ended = {EventType.OK: {}, EventType.FAIL: {}, EventType.INFO: {}}
        self.places = {}

    def record(self, event):
        if event.function is Function.SEND and event.type is not EventType.INVOKE:
            (send,) = event.micro
            self.ended[event.type][send.value] = (send.partition, send.offset, event.time_us)
        elif event.function is Function.POLL and event.type is EventType.OK:
            for partition, records in event.micro[0].records.items():
                for record in records:
                    self.places.setdefault(record.value, set()).add((partition, record.offset))

    @property
    def lost(self):
        return {value: where for value, where in self.ended[EventType.OK].items() if value not in self.places}


def run(spec, recorder):
    return performed(spec, recorder, Choices(spec.seed))


def performed(spec, recorder, choices):
    return perform_schedule(spec, SimulatedWorld(spec, choices), recorder, choices.draw)


def swarm(spec, seeds, families, **settings):
    """(seed, report, events) of many runs."""
    for seed in seeds:
        events = Events()
        yield seed, run(spec(seed, families=families, **settings), events), events


def exported(spec, directory):
    """The run's history as JSON lines."""
    with HistoryWriter(directory, "run") as writer:
        run(spec, writer)
    text = io.BytesIO()
    export_jsonl(directory, text)
    return text.getvalue()


def test_same_seed_gives_the_same_history(spec, tmp_path):
    """Each family, and each acks, as JSON lines, byte by byte."""
    for seed in range(4):
        run_spec = spec(seed, families=FAMILIES[seed % 4], acks=(-1, 0, 1)[seed % 3])
        first = exported(run_spec, tmp_path / f"{seed}-first")
        assert first == exported(run_spec, tmp_path / f"{seed}-second"), f"seed {seed}"
        assert first.count(b"\n") > 500


def test_other_seeds_give_other_histories(spec, tmp_path):
    assert exported(spec(1), tmp_path / "1") != exported(spec(2), tmp_path / "2")


def test_a_recorded_run_replays_draw_by_draw(spec):
    run_spec, events, again = spec(3, families=FAMILIES[3]), Events(), Events()
    choices = Choices(run_spec.seed)
    performed(run_spec, events, choices)
    replayed = Choices.recorded(choices.recording())
    performed(run_spec, again, replayed)
    assert again.ended == events.ended
    assert replayed.recording() == choices.recording()


@pytest.mark.parametrize("families", FAMILIES, ids="+".join)
@pytest.mark.parametrize("min_insync_replicas", [1, 2])
def test_acks_all_without_unclean_elections_loses_nothing(spec, families, min_insync_replicas):
    acknowledged = 0
    for seed, report, events in swarm(spec, range(6), families, min_insync_replicas=min_insync_replicas, **SAFE):
        assert report.drained, f"seed {seed}: {report.unhealthy}"
        assert events.lost == {}, f"seed {seed}"
        appeared = events.ended[EventType.FAIL].keys() & events.places.keys()
        assert appeared == set(), f"seed {seed}: failed for certain and read"
        acknowledged += report.sends.acknowledged
    assert acknowledged > 6 * 200


CORRECTED = {"quorum_required_acks": 2, "leader_election": "largest-epoch-and-log-end"}
MAJORITY = {"commit_rule": "majority", "leader_election": "largest-epoch-and-log-end"}


@pytest.mark.parametrize("families", FAMILIES, ids="+".join)
@pytest.mark.parametrize("rule", [CORRECTED, MAJORITY], ids=["quorum.required.acks", "majority"])
def test_a_quorum_that_elects_by_epoch_and_log_end_loses_nothing(spec, families, rule):
    """Rules 27 and 28."""
    acknowledged = 0
    for seed, report, events in swarm(spec, range(4), families, **rule):
        assert report.drained, f"seed {seed}: {report.unhealthy}"
        assert events.lost == {}, f"seed {seed}"
        acknowledged += report.sends.acknowledged
    assert acknowledged > 4 * 200


def test_an_idempotent_producer_never_doubles_nor_loses(spec):
    for seed, report, events in swarm(spec, range(8), FAMILIES[3], enable_idempotence=True, **SAFE):
        doubled = {value: places for value, places in events.places.items() if len(places) > 1}
        assert doubled == {}, f"seed {seed}"
        assert events.lost == {}, f"seed {seed}"
        assert report.drained, f"seed {seed}"


def test_retries_without_idempotence_do_double(spec):
    assert any(
        len(places) > 1
        for _, _, events in swarm(spec, range(10), FAMILIES[3], **SAFE)
        for places in events.places.values()
    )


class Kept(list):
    """A recorder that keeps whole events."""

    record = list.append


@pytest.mark.parametrize(
    ("settings", "reordered"),
    [({}, True), ({"enable_idempotence": True}, False), ({"max_in_flight": 1}, False)],
    ids=["five in flight", "idempotence", "one in flight"],
)
def test_a_producer_is_overtaken_by_itself_only_in_flight_and_without_idempotence(spec, settings, reordered):
    overtaken = 0
    for number in range(3):
        events = Kept()
        run(spec(number, families=FAMILIES[number % 3], **SAFE, **settings), events)
        overtaken += judge_events(events).counts.get("reordered", 0)
    assert (overtaken > 15) is reordered, f"{overtaken} in three runs"
    assert reordered or overtaken == 0


@pytest.mark.parametrize("acks", [0, 1])
@pytest.mark.parametrize("families", FAMILIES[:3], ids="+".join)
def test_an_acknowledgement_before_replication_loses(spec, acks, families):
    assert any(events.lost for _, _, events in swarm(spec, range(10), families, acks=acks))


def test_an_unclean_election_loses_what_min_isr_1_acknowledged(spec):
    """It takes 20 s for the schedule in which the ISR shrinks to a leader that then dies."""
    risky = {"acks": -1, "min_insync_replicas": 1, "unclean_leader_election_enable": True}
    assert any(events.lost for _, _, events in swarm(spec, range(30), ("kill",), duration_ms=20_000, **risky))
