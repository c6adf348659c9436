"""Plans: what they expand to, and the one sentence that a wrong one gets."""

# ruff: noqa: E501 - the sentences are compared whole

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from bench.simulated import STANDARD_SCHEDULE
from harness.cli.terminal import assigned
from harness.ground.choices import Choices
from harness.ground.errors import PlanError
from harness.plan import Kafka, Namespaces, RunSpec, parse_plan, read_plan
from harness.runs.run import planned
from nemesis.scenarios import FAMILIES, strikes_of

PLANS = Path(__file__).parents[3] / "plans"
WORLD = "\n[worlds.simulated]\n"


def refusal(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "p.toml")
    assert caught.value.exit_code == 64
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_default_plan_is_sixteen_settings_by_three_families_in_both_worlds() -> None:
    runs = read_plan(PLANS / "default.toml").runs()
    cells = {run.cell for run in runs}
    assert len(cells) == 48
    for world, per_cell in (("simulated", 75), ("processes", 1)):
        counted = [run.cell for run in runs if run.world.name == world]
        assert all(counted.count(cell) == per_cell for cell in cells)
    assert {"acks=all,isr=2,unclean=false,idem=true/kill", "acks=1,isr=2,unclean=false,idem=false/kill"} <= cells
    assert not any("acks=all" not in cell and "idem=true" in cell for cell in cells)


@pytest.mark.parametrize(
    ("client", "settings", "idempotent"),
    [
        ("kafka-python", 'acks = "all"', True),
        ("kafka-python", 'acks = "all"\nmax.in.flight.requests.per.connection = 6', False),
        ("kafka-python", 'acks = "all"\nretries = 0', False),
        ("kafka-python", "acks = 1", False),
        ("kafka-python", "acks = 0", False),
        ("confluent-kafka", 'acks = "all"', False),
    ],
)
def test_idempotence_is_the_clients_own_default_unless_the_plan_names_it(
    client: str, settings: str, idempotent: bool
) -> None:
    def idempotence(more: str) -> list[tuple[object, tuple[str, ...], str]]:
        worlds = f'[worlds.processes]\nclient = "{client}"\n[worlds.simulated]\nruns = 1'
        runs = parse_plan(f"[settings]\n{settings}\n{more}\n{worlds}", "p.toml").runs()
        return [(run.settings["enable.idempotence"], run.client_defaults, run.cell) for run in runs]

    real, simulated = idempotence("")
    assert real[:2] == (idempotent, ("enable.idempotence",))
    assert simulated[0] is (idempotent or client == "confluent-kafka"), "models do as Kafka's own client"
    assert "idem" not in real[2]
    named = idempotence("enable.idempotence = false")
    assert {(value, left) for value, left, _ in named} == {(False, ())}


def test_what_the_client_decides_matches_no_exclusion() -> None:
    text = '[matrix]\nacks = ["all", 1]\n[[matrix.exclude]]\nacks = "all"\nenable.idempotence = false' + WORLD
    assert "no combination of the matrix has these values" in refusal(text)


def test_one_plan_gives_both_of_its_worlds_the_same_schedules() -> None:
    plan = read_plan(PLANS / "kafka-default.toml")
    schedules: dict[str, list[object]] = {}
    for run in plan.runs():
        choices = Choices(run.seed)
        what = (run.cell, run.family, run.faults, run.workload, run.settings, planned(run, choices.draw))
        schedules.setdefault(run.world.name, []).append(what)
    assert list(schedules) == ["processes", "kafka"]
    assert schedules["processes"] == schedules["kafka"]
    assert len(schedules["kafka"]) == 16 * 4


@pytest.mark.parametrize("name", sorted(path.name for path in PLANS.glob("*.toml")))
def test_every_shipped_plan_is_valid_and_named_after_its_file(name: str) -> None:
    plan = read_plan(PLANS / name)
    assert f"{plan.name}.toml" == name
    assert plan.runs()


def test_the_standard_schedule_is_the_published_one() -> None:
    run = read_plan(STANDARD_SCHEDULE).runs()[0]
    assert (run.brokers, run.workload.producers + run.workload.consumers, run.faults.count) == (3, 5, 6)
    assert run.workload.duration_ms == 30_000
    assert round(run.workload.writes_per_second * 30) == 500


def test_runs_have_different_directories_and_seeds() -> None:
    runs = read_plan(PLANS / "default.toml").runs()
    assert len({run.directory() for run in runs}) == len(runs) == len({(run.world, run.seed) for run in runs})


def test_every_world_is_given_the_same_schedules() -> None:
    simulated, processes = (
        parse_plan(f"[settings]\nacks = 1\n[worlds.{world}]\nruns = 2\n", "p.toml").runs()
        for world in ("simulated", "processes")
    )
    assert [run.seed for run in simulated] == [run.seed for run in processes]
    alike = msgspec.structs.replace(simulated[1], workload=processes[1].workload, faults=processes[1].faults)
    assert planned(alike, Choices(alike.seed).draw) == planned(processes[1], Choices(processes[1].seed).draw)
    assert planned(alike, Choices(alike.seed).draw).steps


def test_the_same_plan_gives_the_same_runs_in_another_process() -> None:
    script = (
        "import pathlib, sys; from harness.plan import read_plan; print(read_plan(pathlib.Path(sys.argv[1])).runs())"
    )
    environment = {"PYTHONHASHSEED": "77", "PYTHONPATH": str(PLANS.parent)}
    printed = subprocess.run(
        [sys.executable, "-c", script, str(PLANS / "demo.toml")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert printed.stdout.strip() == str(read_plan(PLANS / "demo.toml").runs())


def test_another_seed_moves_every_run_and_nothing_else() -> None:
    plan = read_plan(PLANS / "smoke.toml")
    other = msgspec.structs.replace(plan, seed=plan.seed + 1)
    for spec, moved in zip(plan.runs(), other.runs(), strict=True):
        assert spec.seed != moved.seed
        assert msgspec.structs.replace(spec, seed=moved.seed) == moved


def test_a_seed_does_not_move_when_a_cell_is_added() -> None:
    less = parse_plan("[matrix]\nacks = [1]\n[worlds.simulated]\nruns = 2", "p")
    more = parse_plan('families = ["kill", "pause"]\n[matrix]\nacks = [1, "all"]\n[worlds.simulated]\nruns = 3', "p")
    assert all(any(run == other for other in more.runs()) for run in less.runs())


def test_quoted_and_unquoted_setting_names_are_the_same() -> None:
    quoted = parse_plan('[settings]\n"min.insync.replicas" = 2' + WORLD, "p")
    plain = parse_plan("[settings]\nmin.insync.replicas = 2" + WORLD, "p")
    assert quoted.runs() == plain.runs()
    assert plain.runs()[0].settings["min.insync.replicas"] == 2


def test_a_run_survives_json() -> None:
    run = read_plan(PLANS / "smoke.toml").runs()[0]
    assert msgspec.json.decode(msgspec.json.encode(run), type=RunSpec) == run


def test_a_world_overrides_the_common_workload_and_faults() -> None:
    plan = parse_plan(
        "workload = { partitions = 5, keys = 3 }\n[worlds.simulated]\nworkload = { keys = 4 }\nfaults.count = 9", "p"
    )
    run = plan.runs()[0]
    assert (run.workload.partitions, run.workload.keys, run.faults.count) == (5, 4, 9)


def test_joined_families_draw_one_schedule_from_both() -> None:
    run = parse_plan('families = ["kill+partition"]' + WORLD, "p").runs()[0]
    assert run.family == "kill+partition"
    assert run.faults.families == ("kill", "partition")


def test_an_override_takes_the_place_of_an_axis() -> None:
    plan = parse_plan('[matrix]\nacks = [0, 1, "all"]' + WORLD, "p", {"acks": 1, "min.insync.replicas": 2})
    assert [choice.label for choice in plan.choices] == ["acks=1,isr=2,unclean=false"]


def test_a_value_on_the_command_line_may_have_a_comma() -> None:
    given = ["acks=1,cleanup.policy=compact,delete", "retries=3,linger.ms=5"]
    assert assigned(given) == {"acks": 1, "cleanup.policy": "compact,delete", "retries": 3, "linger.ms": 5}


def test_a_single_run_asks_for_the_choice_that_is_open() -> None:
    plan = read_plan(
        PLANS / "default.toml", {"acks": 1, "min.insync.replicas": 1, "unclean.leader.election.enable": False}
    )
    assert plan.single("kill", "simulated", 5).seed == 5
    assert plan.single("kill", "simulated", None) in plan.runs()
    with pytest.raises(
        PlanError, match=r"needs one fault family \(kill \| pause \| partition\): add, for example, --family kill;"
    ):
        plan.single(None, "simulated", None)
    with pytest.raises(PlanError, match=r"needs one choice of settings \(acks=0 \| 1 \| all, ") as open_choice:
        read_plan(PLANS / "default.toml").single("kill", "simulated", None)
    example = str(open_choice.value).partition("--settings ")[2].partition(";")[0]
    chosen = read_plan(PLANS / "default.toml", assigned([example]))
    assert chosen.single("kill", "simulated", 5).settings["acks"] == 0
    with pytest.raises(PlanError, match='no world "kafka"'):
        plan.single("kill", "kafka", None)


def test_a_name_that_is_not_there_is_told_before_choices_that_are_open() -> None:
    plan = read_plan(PLANS / "default.toml")
    with pytest.raises(PlanError, match=r'no fault family "power"; it has kill and pause and partition'):
        plan.single("power", None, None)
    with pytest.raises(PlanError, match=r'no world "moon"; it has simulated and processes'):
        plan.single(None, "moon", None)


def test_acks_in_quotes_is_the_same_cell() -> None:
    plain, quoted = (parse_plan(f"[matrix]\nacks = [{acks}, 0]" + WORLD, "p.toml") for acks in ("1", '"1"'))
    assert quoted.choices == plain.choices
    assert quoted.runs() == plain.runs()
    assert quoted.choices[0].settings["acks"] == 1
    with pytest.raises(PlanError, match="two combinations are the same, acks=1,isr=1,unclean=false"):
        parse_plan('[matrix]\nacks = ["1", 1]' + WORLD, "p.toml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sead = 1" + WORLD, 'p.toml: sead: unknown key "sead"; did you mean "seed"?'),
        ("[settings]\nmin.insync.replica = 1" + WORLD, 'p.toml: settings.min.insync.replica: unknown setting "min.insync.replica"; did you mean "min.insync.replicas"?'),
        ("[matrix]\nack = [1]" + WORLD, 'p.toml: matrix.ack: unknown setting "ack"; did you mean "acks"?'),
        ("[worlds.simulated.workload]\npartitons = 1", 'p.toml: worlds.simulated.workload.partitons: unknown key "partitons"; did you mean "partitions"?'),
        ("[worlds.simulated]\nfaults.cuont = 1", 'p.toml: worlds.simulated.faults.cuont: unknown key "cuont"; did you mean "count"?'),
        ("[worlds.simulatd]", 'p.toml: worlds.simulatd: unknown key "simulatd"; did you mean "simulated"?'),
        ('families = ["kil"]' + WORLD, f'p.toml: families: unknown fault family "kil"; did you mean "kill"? (there are {", ".join(FAMILIES)})'),
        ('families = ["kill+"]' + WORLD, 'p.toml: families: "kill+" has a "+" without a family on both sides; write, for example, "kill" or "kill+pause"'),
        ('families = ["zzz"]' + WORLD, f'p.toml: families: unknown fault family "zzz"; there are {", ".join(FAMILIES)}'),
        ("[settings]\nacks = true" + WORLD, 'p.toml: settings: acks=true is not possible; choose one of "all", 0, 1'),
        ("[settings]\nacks = {}" + WORLD, 'p.toml: settings: acks=a table is not possible; choose one of "all", 0, 1'),
        ("[settings]\nacks = 2026-01-02" + WORLD, 'p.toml: settings: acks=2026-01-02 is not possible; choose one of "all", 0, 1'),
        ("families = []" + WORLD, "p.toml: families: this list is empty, so there is nothing to run; give it at least one entry"),
        ("[matrix]\nacks = []" + WORLD, "p.toml: matrix.acks: this list is empty, so there is nothing to run; give it at least one entry"),
        ("[matrix]\nacks = 1" + WORLD, "p.toml: matrix.acks: takes a list, not 1; write [1] for one value"),
        ('[matrix]\nacks = ["all", -1]' + WORLD, "p.toml: matrix: two combinations are the same, acks=all,isr=1,unclean=false; write each value only once"),
        ("[settings]\nisr = 2" + WORLD, 'p.toml: settings.isr: unknown setting "isr"; its name in a plan is "min.insync.replicas"'),
        ("[settings]\nacks = [1]" + WORLD, "p.toml: settings.acks: takes one value; write a list of values under [matrix]"),
        ("[settings]\nacks = 2" + WORLD, 'p.toml: settings: acks=2 is not possible; choose one of "all", 0, 1'),
        ("[settings]\nlinger.ms = 2\n[matrix]\nacks = [1, 2]" + WORLD, 'p.toml: matrix: acks=2 is not possible; choose one of "all", 0, 1'),
        ('[settings]\nmin.insync.replicas = "2"' + WORLD, 'p.toml: settings: min.insync.replicas takes a whole number, not "2"'),
        ("[matrix]\nmin.insync.replicas = [1, 4]" + WORLD, "p.toml: matrix: min.insync.replicas=4 can never be met with replication.factor=3; lower the first or raise the second"),
        ('[settings]\ngroup.protocol = "consumer"\n[workload]\nname = "groups"\n[worlds.processes]', 'p.toml: worlds.processes: brokers over sockets have no group.protocol="consumer" (KIP-848); write group.protocol = "classic" under [settings], or leave [worlds.processes] out'),
        ('[workload]\nname = "groups"\n[worlds.simulated.workload]\nstatic_members = true', 'p.toml: worlds.simulated.workload.static_members: the reference broker has no static members (KIP-345); leave it out, or write it under [worlds.kafka]'),
        ('[settings]\ngroup.protocol = "consumer"\n[workload]\nname = "groups"\n[worlds.kafka]\nclient = "kafka-python"', 'p.toml: worlds.kafka.client: kafka-python has no group.protocol="consumer" (KIP-848); write client = "confluent-kafka", or leave this protocol out'),
        ('[settings]\ngroup.protocol = "consumer"\n[workload]\nname = "groups"\n[worlds.kafka]\nclient = "java"\nother_clients = ["kafka-python"]', 'p.toml: worlds.kafka.other_clients: kafka-python has no group.protocol="consumer" (KIP-848); write other_clients = ["confluent-kafka"], or leave this protocol out'),
        ("brokers = 1" + WORLD, "p.toml: settings: replication.factor=3 needs that many brokers and the plan has 1; raise brokers or lower replication.factor"),
        ("[worlds.simulated]\nruns = -1", "p.toml: worlds.simulated.runs: -1 is too small; the least is 1"),
        ("[worlds.simulated]\nruns = true", "p.toml: worlds.simulated.runs: takes a whole number, not true"),
        ("families = ['kill', 'pause']\n[worlds.simulated]\nruns = 60_000", "p.toml: this plan asks for 120000 runs; the most is 100000, so lower runs or shrink the matrix: each leaves a directory of files, and one job checks them all"),
        ("[worlds.simulated]\nworkload.writes_per_second = -0.5", "p.toml: worlds.simulated.workload.writes_per_second: -0.5 is too small; the least is 0.001"),
        ("[worlds.simulated]\nworkload.writes_per_second = nan", "p.toml: worlds.simulated.workload.writes_per_second: nan is not a number; write a number"),
        ("[worlds.simulated]\nworkload.duration_ms = 'long'", "p.toml: worlds.simulated.workload.duration_ms: takes a whole number, not \"long\""),
        ("[worlds.simulated]\nhost = 'moon'", "p.toml: worlds.simulated.host: takes one of \"loopback\", \"namespaces\", \"ssh\", \"existing\", \"commands\", not \"moon\""),
        ("[worlds.simulated]\nfaults = { fault_ms_min = 9_000 }", "p.toml: worlds.simulated.faults: fault_ms_min=9000 exceeds fault_ms_max=3000; swap them"),
        ("[worlds.simulated]\nfaults.families = ['kill']", "p.toml: worlds.simulated.faults.families: write families at the top of the plan; each is a row of the matrix"),
        ("worlds = 3", "p.toml: worlds: takes a table ([worlds]), not 3"),
        ("seed = 1", "p.toml: worlds: the plan names no world; add [worlds.simulated], [worlds.processes] or [worlds.kafka]"),
        ("seed = -1" + WORLD, "p.toml: seed: -1 is too small; the least is 0"),
        ('name = "../x"' + WORLD, 'p.toml: name: "../x" cannot name a directory; use letters, digits, "-", "_", ".", at most 64'),
        ('name = "latest"' + WORLD, 'p.toml: name: "latest" is the link to the newest campaign; choose another name'),
        (f'name = "{"x" * 5000}"' + WORLD, f'p.toml: name: "{"x" * 59}... cannot name a directory; use letters, digits, "-", "_", ".", at most 64'),
        ('families = ["kill+kill"]' + WORLD, 'p.toml: families: "kill+kill" names the same faults twice; leave one out'),
        ('families = ["kill+pause", "pause+kill"]' + WORLD, 'p.toml: families: "pause+kill" names the same faults twice; leave one out'),
        ("families = [1]" + WORLD, 'p.toml: families: 1 is not the name of a family; write, for example, "kill" or "kill+pause"'),
        ("[workload]\nduration_ms = 1_000" + WORLD, "p.toml: worlds.simulated: no fault fits in: healed_ms_min=1000 and fault_ms_min=500 exceed duration_ms=1000; raise duration_ms or lower the others"),
        ("[workload]\nreplace_silent_ms = 1_000" + WORLD, "p.toml: worlds.simulated.workload: replace_silent_ms=1000 is less than request.timeout.ms=1500, so producers would be replaced while they wait for an answer; raise it, or leave it out"),
        ("[workload]\ntopics = 20\npartitions = 501" + WORLD, "p.toml: workload.topics: 20 topics of 501 log partitions are 10020 in all; the most are 10000: the reference broker has no more"),
        ("[settings]\nbatch.size = 2_000_000" + WORLD, "p.toml: settings: batch.size=2000000 is too large; the most is 1048500"),
        ('[settings]\ncompression.type = "zip"' + WORLD, 'p.toml: settings: compression.type="zip" is not possible; choose one of "none", "gzip", "snappy", "lz4", "zstd"'),
        ("[workload]\nwrites_per_second = inf" + WORLD, "p.toml: workload.writes_per_second: inf is too large; the most is 1000000: no client library is as fast"),
        ("[workload]\nname = 'burst'" + WORLD, 'p.toml: workload.name: unknown workload "burst"; did you mean "bursts"?'),
        ("[workload]\ntopic = '..'" + WORLD, 'p.toml: workload: topic=".." cannot name a topic; use letters, digits, ".", "_", "-", at most 249'),
        ("[worlds.simulated]\nhost = 'namespaces'", "p.toml: worlds.simulated.host: the simulated world is one process and has no hosts; leave this key out"),
        (f"seed = {2**63}" + WORLD, "p.toml: seed: an integer here has more than 64 bits, and TOML's have no more; write a smaller one"),
        ("seed = 2020-01-01" + WORLD, "p.toml: seed: takes a whole number, not 2020-01-01"),
        ("worlds = ['simulated']", 'p.toml: worlds: takes a table ([worlds]), not ["simulated"]'),
        ("acks = 1" + WORLD, "p.toml: acks: this key does not belong here; write it under [settings], or a list of values under [matrix]"),
        ("[workload]\nmin.insync.replicas = 1" + WORLD, "p.toml: workload.min.insync.replicas: this key does not belong here; write it under [settings], or a list of values under [matrix]"),
        ("duration_ms = 5" + WORLD, "p.toml: duration_ms: this key does not belong here; write it under [workload]"),
        ("[worlds.simulated]\ncount = 5", "p.toml: worlds.simulated.count: this key does not belong here; write it under [faults]"),
        ("[settings]\nruns = 5" + WORLD, "p.toml: settings.runs: this key does not belong here; write it under a world, such as [worlds.kafka]"),
        ("[faults]\nbrokers = 5" + WORLD, "p.toml: faults.brokers: this key does not belong here; write it at the top of the plan"),
        ("families = ['kill, pause']" + WORLD, 'p.toml: families: "kill, pause" is not one family; write ["kill", "pause"], or "kill+pause" for faults of each in one run'),
        ("families = [['kill', 'pause']]" + WORLD, 'p.toml: families: ["kill", "pause"] is not the name of a family; write, for example, "kill" or "kill+pause"'),
        ("[[writes]]\nat_ms = 10_000" + WORLD, "p.toml: writes[0].at_ms: 10000 is after the end of the writes; raise duration_ms from 10000"),
        ("[worlds.kafka]\nclient = 'librdkafka'", 'p.toml: worlds.kafka.client: librdkafka is used by "confluent-kafka"; write that'),
        ("[settings]\nmin.cleanable.dirty.ratio = nan" + WORLD, "p.toml: settings: min.cleanable.dirty.ratio=nan is not a number; write a number"),
        ("[settings]\nmin.cleanable.dirty.ratio = 2" + WORLD, "p.toml: settings: min.cleanable.dirty.ratio=2.0 is too large; the most is 1"),
        ("seed = " + "[" * 5000 + "]" * 5000 + WORLD, "p.toml: tables or lists are nested too deeply; write them as the plans in plans/ do"),
        (".".join("a" * 2000) + " = 1" + WORLD, "p.toml: tables or lists are nested too deeply; write them as the plans in plans/ do"),
        ('[worlds.kafka]\nversion = "newest"', 'p.toml: worlds.kafka.version: "newest" is not a version of Apache Kafka; write three numbers, for example "4.1.1"'),
        ('[worlds.simulated]\nversion = "4.1.1"', "p.toml: worlds.simulated.version: only the kafka world has versions; leave this key out"),
        ("[worlds.kafka]\ncontrollers = 2", "p.toml: worlds.kafka.controllers: a quorum of 2 controllers is not possible here; choose 1, 3 or 5"),
        ("[worlds.processes]\ncontrollers = 3", "p.toml: worlds.processes.controllers: the reference broker has one controller; leave this key out"),
        ('[worlds.simulated]\nclient = "confluent-kafka"', "p.toml: worlds.simulated.client: the simulated world has models of clients; leave this key out"),
        ('[worlds.processes]\nmode = "zookeeper"', "p.toml: worlds.processes.mode: only the kafka world has modes; leave this key out"),
        ('[worlds.kafka]\nmode = "zookeeper"\ncontrollers = 3', 'p.toml: worlds.kafka.controllers: with mode = "zookeeper" the controller is one of the brokers; leave controllers out'),
        ("[workload]\nwrites = []" + WORLD, "p.toml: workload.writes: this key does not belong here; write it at the top of the plan"),
        ("seed = ", "p.toml: not valid TOML: Invalid value (at end of document)"),
        ("a = 1\nb = = 2", "p.toml: not valid TOML: Invalid value (at line 2, column 5)"),
    ],
)  # fmt: skip
def test_a_wrong_plan_gets_one_sentence_with_its_place(text: str, sentence: str) -> None:
    assert refusal(text) == sentence


def test_a_plan_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(PlanError, match="is not UTF-8; name a plan"):
        read_plan(tmp_path / "latin.toml")
    with pytest.raises(PlanError, match="No such file or directory; name a TOML file"):
        read_plan(tmp_path / "absent.toml")
    with pytest.raises(PlanError, match="Is a directory"):
        read_plan(tmp_path)


def test_a_byte_order_mark_is_no_part_of_a_plan(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b"\xef\xbb\xbfseed = 5\n[worlds.simulated]\n")
    assert read_plan(tmp_path / "p.toml").seed == 5


def test_a_kafka_world_names_its_release() -> None:
    plan = parse_plan('[worlds.kafka]\nversion = "4.1.1"\nhost = "namespaces"\ncontrollers = 3', "p.toml")
    assert {run.world for run in plan.runs()} == {Kafka(version="4.1.1", host=Namespaces(), controllers=3)}


EXCLUDING = """
[matrix]
acks = ["all", 1]
min.insync.replicas = [1, 2, 3]
replication.factor = [2, 3]
[worlds.simulated]
[[matrix.exclude]]
min.insync.replicas = 3
"replication.factor" = 2
"""


def test_exclusions_take_impossible_combinations_out_of_a_matrix() -> None:
    assert "can never be met with replication.factor=2" in refusal(EXCLUDING.partition("[[")[0])
    labels = [choice.label for choice in parse_plan(EXCLUDING, "p.toml").choices]
    assert len(labels) == 10
    assert not any("isr=3" in label and "replication.factor=2" in label for label in labels)


def test_an_exclusion_means_settings_however_they_are_spelled() -> None:
    more = "[[matrix.exclude]]\nacks = -1\nmin.insync.replicas = 1\n[[matrix.exclude]]\nacks = 1\nlinger.ms = 0\n"
    labels = {choice.label for choice in parse_plan(EXCLUDING + more, "p.toml").choices}
    assert {label.partition(",unclean")[0] for label in labels} == {"acks=all,isr=2", "acks=all,isr=3"}


def test_a_setting_fixed_for_one_run_leaves_exclusions_in_force() -> None:
    fixed = parse_plan(EXCLUDING, "p.toml", {"min.insync.replicas": 3}).choices
    assert [choice.settings["replication.factor"] for choice in fixed] == [3, 3]
    assert len(parse_plan(EXCLUDING, "p.toml", {"min.insync.replicas": 1}).choices) == 4
    with pytest.raises(PlanError, match=r"matrix\.exclude: these exclusions leave nothing to run; remove one"):
        parse_plan(EXCLUDING, "p.toml", {"min.insync.replicas": 3, "replication.factor": 2})


@pytest.mark.parametrize(
    ("exclude", "sentence"),
    [
        ("acks = 0", "exclude[0]: no combination of the matrix has these values; correct or remove them"),
        ("acks = 1\n[[matrix.exclude]]\nlinger.ms = 5", "exclude[1]: no combination of the matrix has these values; correct or remove them"),
        ("acs = 1", 'exclude[0].acs: unknown setting "acs"; did you mean "acks"?'),
        ("acks = [1]", "exclude[0].acks: takes one value; write a [[matrix.exclude]] for each of [1]"),
        ("linger.ms = 0", "exclude: these exclusions leave nothing to run; remove one"),
        ("", "exclude: these exclusions leave nothing to run; remove one"),
    ],
)  # fmt: skip
def test_a_wrong_exclusion_gets_one_sentence_with_its_place(exclude: str, sentence: str) -> None:
    text = f'[worlds.simulated]\n[matrix]\nacks = [1, "all"]\n[[matrix.exclude]]\n{exclude}'
    assert refusal(text) == f"p.toml: matrix.{sentence}"


def test_exclusions_are_tables() -> None:
    assert refusal("[matrix]\nexclude = 3" + WORLD) == (
        "p.toml: matrix.exclude: takes a list of tables ([[matrix.exclude]]), not 3"
    )


@pytest.mark.parametrize(
    "name",
    ["default", "smoke", "demo", "kafka", "kafka-default", "kafka-flushed", "kafka-idempotent-librdkafka",
     "kafka-no-false-alarm-kafka-python", "kafka-no-false-alarm-librdkafka", "kafka-usual-advice-java",
     "kafka-usual-advice-kafka-python", "kafka-usual-advice-librdkafka", "kafka-weaker", "existing", "ssh"],
)  # fmt: skip
def test_every_cell_on_real_machines_has_faults_enough_to_be_held(name: str) -> None:
    runs = [run for run in read_plan(PLANS / f"{name}.toml").runs() if run.world.name != "simulated"]
    drawn: dict[tuple[str, str], Counter[str]] = {}
    for run in runs:
        steps = planned(run, Choices(run.seed).draw).steps
        # As runs are judged: a story is one fault, by those of its family's own kind.
        stories = {(step.group, step.family) for step in steps if step.fault.kind in strikes_of(step.family)}
        drawn.setdefault((run.cell, run.family), Counter()).update(family for _, family in stories)
    enough = runs[0].faults.exercised_min
    few = [cell for (cell, family), counts in drawn.items() if min(counts[part] for part in family.split("+")) < enough]
    assert few == []


COMPACTED = 'settings = {cleanup.policy = "compact"}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[worlds.kafka]\nworkload = {name = "keyed"}\n', 'write cleanup.policy = "compact"'),
        (f"{COMPACTED}[worlds.kafka]\n", 'choose workload = { name = "keyed" }'),
        (
            f'{COMPACTED}[worlds.processes]\nworkload = {{name = "keyed"}}\n',
            "which the reference broker has in virtual time only; write it under [worlds.simulated] or [worlds.kafka]",
        ),
    ],
)
def test_compaction_and_the_workload_of_keys_need_each_other_and_a_cleaner(text: str, words: str) -> None:
    assert words in refusal(text)


def test_of_one_broker_one_may_be_dead_without_a_word_of_the_plan() -> None:
    text = 'brokers = 1\nfamilies = ["kill"]\n[settings]\nreplication.factor = 1\n[worlds.simulated]\n'
    assert {run.faults.dead_brokers_max for run in parse_plan(text, "p.toml").runs()} == {1}
