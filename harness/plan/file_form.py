"""The keys of a plan's file, table by table: their types, their defaults, and what each is for.

The tables ``[workload]`` and ``[faults]`` are :class:`workloads.WorkloadPlan` and :class:`nemesis.plan.FaultPlan`,
``inventory`` is :class:`harness.plan.machines.Machine`, ``security`` is :class:`harness.plan.security.Security`. The
bounds of numbers are in :mod:`harness.plan.bounds`.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from harness.plan.values import Table
from harness.plan.worlds import ClientName, HostName, ModeName, UpgradeEnd
from nemesis.succession import UpgradeBy

#: The source of a run's draws: chance, or nowhere, so that every message takes a millisecond.
Chance = Literal["drawn", "none"]


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """The top of a plan."""

    name: str = ""
    """The name of the directory below `results/`; by default the file's."""
    seed: int = 1
    """Every run's seed follows from it, and so do schedules and workloads."""
    brokers: int = 3
    """Brokers of each cluster."""
    racks: list[str] = []
    """Each broker's rack, in their order: `["a", "a", "b"]`. Brokers are told (`broker.rack`), so the replicas of a new
    topic go to as many racks as there are (KIP-36)."""
    log_dirs: int = 1
    """Log directories of each broker, in the simulated world. With several a broker outlives the failure of one (JBOD,
    KIP-112)."""
    assignment: list[list[int]] = []
    """The brokers of each log partition of a topic, the preferred leader first: `[[0, 1, 2], [1, 2, 0]]`. By default
    the cluster places them. Racks are not looked at then, nor at a later reassignment."""
    families: tuple[str, ...] = ("kill",)
    """Families of faults ([faults](faults.md#families)). `"kill+partition"` draws one schedule from both: a scenario of
    each in turn, in another order in each run."""
    story: str = ""
    """The number of a scripted story (`"S40"`), or a story file beside the plan or below it (`"my.toml"`). A run
    performs it in place of a workload and drawn faults. It is the cell's family, so the plan has no `families`, and the
    workload has `partitions = 1`. See [stories](stories.md)."""
    settings: Table = {}
    """Settings under Kafka's own names, one value each ([settings](settings.md)). A setting that is left out has its
    default. That of `enable.idempotence` is the client library's: true with kafka-python, with java since 3.0.1, and in
    the simulated world where `acks=all`, at most five requests are in flight and `retries` is not 0; else false, and
    always with confluent-kafka. The report says what was in force. No exclusion meets such a value: name it to
    choose."""
    matrix: Table = {}
    """The same names with lists of values: one cell for every combination. Each `[[matrix.exclude]]` names settings
    with one value each, and takes out the combinations that have all of them. It may name any setting, with the value
    that it has in the matrix, under `[settings]` or by default; one that no combination matches is refused."""
    workload: Table = {}
    """The table [`[workload]`](#workload)."""
    faults: Table = {}
    """The table [`[faults]`](#faults)."""
    schedule: list[Table] = []
    """Exactly these faults, in place of drawn ones: [`[[schedule]]`](#schedule). The plan has one family, and its first
    run has the plan's own seed."""
    writes: list[Table] = []
    """Exactly these writes, in place of generated ones: [`[[writes]]`](#writes). The workload has no `name`,
    `writes_per_second`, `keys` or `skew` then. Nothing is waited for before the first write. After the last one only
    the fresh producers at the end of every run write."""
    chance: Chance = "drawn"
    """`"none"`, with a `[[schedule]]`: in the simulated world every message takes a millisecond, and no cut lets a
    message be sent again. Elsewhere it changes nothing."""
    expected: list[Table] = []
    """The outcome that is expected of each cell. A campaign says at its end whether it came; it changes no exit code. A
    cell is held against the first entry that fits its `world`, `family` and `settings` (a value, or a list of them);
    what an entry leaves out is any. `outcomes` are those that the cell may have; `some` is one that a cell of the entry
    has at least; `anomalies` are all that a broken promise may be of; `figures` are the least and the most of numbers
    of a cell, `{ p99_ms = [0, 50] }`: `p50_ms`, `p99_ms` and `p99.9_ms` of acknowledged writes, and
    `acknowledged_a_run`, `lost_a_run`, `refused_attempts_a_run` and `isr_changes_a_run`."""
    worlds: Table = {}
    """The tables [`[worlds.simulated]`, `[worlds.processes]` and `[worlds.kafka]`](#worlds); at least one."""


class WorldTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table of a world."""

    runs: int = 0
    """Runs of each cell; by default 10 in the simulated world and 1 elsewhere, and 1 where a story or a `[[schedule]]`
    leaves nothing to draw."""
    parallel: int = 0
    """Runs at a time. The default in virtual time is one a core, on real machines 3 clusters. It is one on a cluster
    that exists already and on machines over SSH. Runs in virtual time go on beside those of the plan's first world in
    real time, and give way to them (`nice`); a second world in real time follows."""
    workload: Table = {}
    """Values that replace those of `[workload]` in this world."""
    faults: Table = {}
    """Values that replace those of `[faults]` in this world."""
    host: HostName = "loopback"
    """The place of the nodes. `"namespaces"` needs root: addresses and links of their own. `"ssh"`, `"existing"`
    and `"commands"` are for the kafka world only."""
    client: ClientName = "kafka-python"
    """The client library of real worlds ([clients](../guides/clients.md))."""
    client_version: str = ""
    """The installed release of Apache Kafka from which `client = "java"` comes; by default that of the brokers in the
    kafka world, else the newest that was tried."""
    other_clients: list[str] = []
    """Kafka: libraries whose clients take turns with those of `client`, as old and new ones do in an upgrade:
    `["java:4.3.1", "confluent-kafka"]`."""
    version: str = ""
    """Kafka: an installed release; by default the newest that was tried."""
    upgrade_to: str = ""
    """Kafka: the release to which the family `upgrade` takes every node, one after the other; by default the same."""
    upgrade_end: UpgradeEnd = "finalize"
    """Kafka: the end of an upgrade. `"finalize"` raises the features, `"back"` takes every node back, `"leave"` does
    neither."""
    upgrade_by: UpgradeBy = "restart"
    """Kafka: `"replace"` lets each node leave the cluster, and a new one with its number and an empty disk join;
    `"move-and-replace"` moves a broker's replicas away before, and back afterwards. It needs release 3.9 and three
    controllers: voters are removed and added (KIP-853)."""
    change: Table = {}
    """Kafka: settings that nodes have after their step of the family `upgrade`: `{ "num.io.threads" = 8 }`."""
    controllers: int = 1
    """Kafka: 1, 3 or 5 controllers."""
    mode: ModeName = "kraft"
    """Kafka: `"zookeeper"` is for releases from 0.10.1 to 3.9."""
    inventory: Table = {}
    """Kafka with `host = "ssh"`: the machines, as a list `machines` and what all of them share ([below](#machines))."""
    bootstrap: list[str] = []
    """Kafka with `host = "existing"`: addresses of brokers, `["host:port"]`."""
    security: Table = {}
    """Kafka with `host = "existing"` or `"commands"`: TLS and SASL ([below](#security))."""
    commands: Table = {}
    """Kafka with `host = "commands"`: the operator's own commands, each with one that observes it ([your
    cluster](../start/your-cluster.md#break-it-by-your-own-commands))."""


class ScheduleEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of ``[[schedule]]``, beside the fields of its fault. It has a ``broker`` or a ``role``."""

    begin_ms: int
    """Its begin: from the moment at which faults may happen; with `[[writes]]`, from the first moment of the
    workload, as the writes are."""
    end_ms: int
    """Its end."""
    fault: str
    """Its kind: `"kill"`, `"holdmessages"`, ... ([faults](faults.md))."""
    role: str = ""
    """The target, by its role when the fault begins: `"leader"`, `"follower"`, `"followers"`, `"isr-member"` or
    `"out-of-isr"` of a log partition; `"broker"`, `"minority"`, `"rack"`, `"controller"` or `"producer"`."""
    broker: int = 0
    """The target, by number; leadership is moved to it, or a record on it is damaged."""
    partition: int = 0
    """The log partition of the role, or the one that is moved or damaged."""
    pick: int = 0
    """Among several holders of the role it decides, modulo their number."""
    scenario: str = ""
    """The scenario that it is counted as, of a family of the plan; by default `"FAMILY/given"`."""
    group: int = -1
    """Faults with one number are one scenario; by default those that overlap are."""


class WriteEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of ``[[writes]]``."""

    at_ms: float
    """Its time, from the first moment of the workload; fractions are microseconds."""
    producer: int = 0
    """The producer that sends it."""
    partition: int = 0
    """The log partition to which it is sent."""
    key: str = "key-0"
    """Its key."""


#: The defaults of what a plan leaves out.
PLAN_DEFAULTS: Final = PlanFile()
WORLD_DEFAULTS: Final = WorldTable()
