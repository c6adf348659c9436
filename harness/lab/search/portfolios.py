"""Portfolios: under which settings, with which faults and how many writes a hunt looks for what is wrong.

A portfolio is not made for a bug. It is a choice of settings that people use, or that a release had, and of faults
that its promise covers at least in part. What a run may lose is never a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from harness.ground.choices import Choices, derived_seed
from harness.lab.search.storms import CUTS, FAULTS_A_STORM, KINDS, Storms
from harness.plan import RunSpec, Simulated, timings_of
from harness.worlds.reference_settings import OF_GROUPS, OF_PIPELINES, OF_TRANSACTIONS
from nemesis.cluster import Capability
from nemesis.plan import FaultPlan
from nemesis.scenarios import FAMILIES, needs_of
from nemesis.topology import Shape
from workloads import Settings, SettingsError, WorkloadPlan, kind_of

#: In every run of a hunt.
BROKERS: Final = 3
#: Failures are noticed within a second, so that a short run has room for many.
QUICK: Final[Mapping[str, Any]] = {
    "acks": "all",
    "min.insync.replicas": 2,
    "replica.lag.time.max.ms": 1_000,
    "broker.session.timeout.ms": 1_000,
    "broker.heartbeat.interval.ms": 250,
}
WORKLOAD: Final = WorkloadPlan(writes_per_second=30.0, duration_ms=12_000, producers=2, consumers=1)
#: Many are aborted, or left to a successor, and there are more of them than plain writes would be.
IN_TRANSACTIONS: Final = msgspec.structs.replace(
    WORKLOAD,
    name="transactions",
    writes_per_second=80.0,
    sends_per_transaction=4,
    aborts_percent=40,
    takeover_every_ms=1_500,
)
#: Members come and go all the time, and commit what little they have read.
IN_GROUPS: Final = msgspec.structs.replace(
    WORKLOAD, name="groups", writes_per_second=60.0, consumers=3, member_change_ms=1_500
)
#: The same; what they write is aborted now and then. After it, offsets that are pending for long have their end.
IN_PIPELINES: Final = msgspec.structs.replace(
    IN_GROUPS, name="consume-transform-produce", aborts_percent=25, drain_limit_ms=60_000
)


class Portfolio(msgspec.Struct, frozen=True, kw_only=True):
    """One choice: settings beside :data:`QUICK`, and scenarios of ``families``, or storms.

    Each run draws one value of each of the settings ``drawn``.

    Storms have faults of ``kinds`` with cuts of ``shapes``; ``faults`` are the least and the most of one storm.

    ``dead_brokers_max``, ``healed_ms_min`` and ``fault_ms_max`` are the budget's (:class:`nemesis.plan.FaultPlan`).
    """

    name: str
    settings: Mapping[str, Any] = {}
    drawn: Mapping[str, tuple[Any, ...]] = {}
    families: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = CUTS
    faults: tuple[int, int] = FAULTS_A_STORM
    dead_brokers_max: int = 2
    healed_ms_min: int = 1_000
    fault_ms_max: int = 3_000
    racks: tuple[str, ...] = ()
    log_dirs: int = 1
    partitions: int = 1
    producers: int = WORKLOAD.producers
    workload: WorkloadPlan = WORKLOAD

    def spec(self, seed: int, number: int, changed: Mapping[str, Any]) -> RunSpec:
        """Run ``number`` of a hunt from ``seed``, with ``changed`` settings, and with its faults where it has storms.

        Raises:
            SettingsError: the changed settings do not fit the portfolio's.
        """
        workload = msgspec.structs.replace(self.workload, partitions=self.partitions, producers=self.producers)
        run_seed = derived_seed(seed, self.name, number)
        drawn = {name: values[derived_seed(run_seed, name) % len(values)] for name, values in self.drawn.items()}
        settings = self._with({**drawn, **changed})
        draw = Choices(run_seed).draw
        schedule = self.storms(changed).schedule(workload.duration_ms, draw) if self.kinds else None
        return RunSpec(
            world=Simulated(),
            cell=f"hunt/{self.name}",
            family="+".join(self.families or dict.fromkeys(KINDS[kind].family for kind in self.kinds)),
            settings=settings.to_mapping(),
            workload=workload,
            faults=self._budget(),
            seed=run_seed,
            brokers=BROKERS,
            racks=self.racks,
            log_dirs=self.log_dirs,
            schedule=schedule,
        )

    def storms(self, changed: Mapping[str, Any]) -> Storms:
        """The storms from which its schedules are drawn."""
        settings = self._with(changed)
        timings, brokers = timings_of(settings), settings.replication_factor
        return Storms(
            self.kinds,
            self._budget(),
            timings,
            brokers=brokers,
            partitions=self.partitions,
            shapes=self.shapes,
            faults=self.faults,
        )

    def _with(self, changed: Mapping[str, Any]) -> Settings:
        settings = Settings.from_mapping({**QUICK, **self.settings, **changed})
        if settings.replication_factor > BROKERS:
            raise SettingsError(f"a hunt has {BROKERS} brokers; lower replication.factor to {BROKERS} or less")
        if settings.expires and not kind_of(self.workload).judged_by_age:
            raise SettingsError(f"the portfolio {self.name} expects records to stay at any age; leave retention.ms out")
        if self.fits(settings.cleanup_policy):
            return settings
        if settings.cleanup_policy == "delete":
            raise SettingsError(f"the portfolio {self.name} is about compaction; leave cleanup.policy=delete out")
        keyed = " or ".join(each.name for each in PORTFOLIOS if each.fits(settings.cleanup_policy))
        raise SettingsError(
            f"the portfolio {self.name} expects every record to stay, and "
            f"cleanup.policy={settings.cleanup_policy} removes some; choose --portfolio {keyed}"
        )

    def fits(self, cleanup_policy: str) -> bool:
        """Writes with keys are for compacted topics, all others for topics in which every record stays."""
        return kind_of(self.workload).keyed is (cleanup_policy != "delete")

    def _budget(self) -> FaultPlan:
        return FaultPlan(
            families=self.families,
            count=6,
            fault_ms_max=self.fault_ms_max,
            dead_brokers_max=self.dead_brokers_max,
            healed_ms_min=self.healed_ms_min,
        )


_RACKS: Final = ("a", "b", "c")
_PATIENT: Final = {"request.timeout.ms": 6_000, "delivery.timeout.ms": 12_000}
_IMPATIENT: Final = {"request.timeout.ms": 1_500, "delivery.timeout.ms": 2_000}
_IDEMPOTENT: Final = {"enable.idempotence": True}
_ELIGIBLE: Final = {"eligible.leader.replicas": True}
_FLUSHED: Final = {"flush.messages": 1}
_UNCLEAN: Final = {"unclean.leader.election.enable": True}
_MAJORITY: Final = {"commit.rule": "majority", "leader.election": "largest-epoch-and-log-end"}
#: As in production, no broker leaves the ISR, and few are fenced, while links are down for a second or two.
_SLOW_TO_SHRINK: Final = {"replica.lag.time.max.ms": 10_000, "broker.session.timeout.ms": 4_000}
_BRIEF: Final[Mapping[str, Any]] = {"fault_ms_max": 1_200, "healed_ms_min": 400}
#: Each fault is over, and what it destroyed is fetched again, before the next one.
_ONE_BY_ONE: Final[Mapping[str, Any]] = {"fault_ms_max": 600, "healed_ms_min": 3_000}
#: A record replaces or deletes another within a second or two; tombstones stay for longer than any run.
_KEYED: Final = msgspec.structs.replace(WORKLOAD, name="keyed", keys=6)
_COMPACTED: Final[Mapping[str, Any]] = {
    "enable.idempotence": True,
    "cleanup.policy": "compact",
    "segment.ms": 100,
    "min.cleanable.dirty.ratio": 0.01,
}
_NETWORK: Final = ("kill", "pause", "cut", "cut", "hold", "slow")
_MOVES: Final = ("move", "move", "cut", "cut", "cut", "kill")

#: One broker and the others, or the controller; and what is between two brokers, or one and the controller.
_OF_ONE: Final = (Shape.FROM_BROKERS, Shape.ISOLATE, Shape.DEAF, Shape.MUTE)
_SINGLE_LINKS: Final = (Shape.FROM_CONTROLLER, Shape.BRIDGE, Shape.BRIDGE, Shape.ISOLATE, Shape.ISOLATE, Shape.NO_FETCH)

#: In the order in which a hunt goes round.
PORTFOLIOS: Final = (
    Portfolio(name="stories", families=("kill", "pause", "partition")),
    # What takes several links of different brokers, cut in turn while leadership moves, needs many faults (rule 30).
    Portfolio(
        name="moves", kinds=_MOVES, shapes=_SINGLE_LINKS, faults=(7, 14), settings=_SLOW_TO_SHRINK, **_BRIEF
    ),
    Portfolio(name="network", kinds=_NETWORK, settings=_IDEMPOTENT),
    Portfolio(name="patient-clients", kinds=("pause", "pause", "cut", "kill"), settings=_PATIENT | _IDEMPOTENT),
    Portfolio(
        name="eligible",
        kinds=("kill", "power", "stop", "cut", "wipe"),
        settings=_ELIGIBLE | _FLUSHED,
        dead_brokers_max=3,
    ),
    Portfolio(name="eligible-stories", families=("power", "wipe"), settings=_ELIGIBLE, healed_ms_min=2_500),
    Portfolio(name="flushed", families=("power",), settings=_FLUSHED, dead_brokers_max=3, healed_ms_min=2_500),
    Portfolio(
        name="every-replica",
        kinds=("wipe", "late-fetch", "late-fetch", "kill"),
        shapes=_OF_ONE,
        settings={"min.insync.replicas": 3},
        dead_brokers_max=1,
        healed_ms_min=1_500,
    ),
    Portfolio(name="late-messages", kinds=("hold", "hold", "move", "cut", "kill"), **_BRIEF),
    Portfolio(name="damaged-records", kinds=("corrupt", "move"), dead_brokers_max=1, **_ONE_BY_ONE),
    Portfolio(name="outage", families=("outage", "kill"), settings={"min.insync.replicas": 1}),
    Portfolio(name="destroyed-copies", families=("wipe", "log-directory"), healed_ms_min=2_500, log_dirs=2),
    Portfolio(name="operators", kinds=("stop", "stop", "move", "kill", "cut"), settings=_IDEMPOTENT),
    Portfolio(name="one-in-sync", kinds=_NETWORK, settings={"min.insync.replicas": 1}),
    Portfolio(
        name="release-2.1",
        kinds=("move", "move", "cut", "cut", "slow"),
        shapes=_SINGLE_LINKS,
        settings=_SLOW_TO_SHRINK | {"truncation": "kip-320"},
        **_BRIEF,
    ),
    Portfolio(name="release-3.5", kinds=_NETWORK, settings=_IMPATIENT | {"strict.min.isr": False}),
    Portfolio(name="majority", kinds=_NETWORK, settings=_MAJORITY),
    Portfolio(name="eligible-unclean", kinds=("kill", "stop", "cut", "pause"), settings=_ELIGIBLE | _UNCLEAN),
    Portfolio(
        name="new-producers",
        kinds=("controller", "crash", "crash", "kill", "move"),
        settings=_IDEMPOTENT,
        producers=4,
        **_BRIEF,
    ),
    Portfolio(
        name="away-and-wiped",
        kinds=("cut", "cut", "wipe"),
        shapes=(Shape.FROM_CONTROLLER, Shape.FROM_CONTROLLER, Shape.NO_HEARTBEAT),
        dead_brokers_max=1,
    ),
    Portfolio(name="stops-and-power", kinds=("stop", "stop", "power", "kill"), healed_ms_min=1_500),
    Portfolio(
        name="moves-of-producers", kinds=_MOVES, shapes=_SINGLE_LINKS, faults=(7, 14), settings=_IDEMPOTENT, **_BRIEF
    ),
    Portfolio(name="near-reads", kinds=(*_MOVES, "pause"), settings={"follower.fetching": True}, racks=_RACKS),
    Portfolio(
        name="compacted",
        kinds=("kill", "stop", "cut", "cut", "pause", "move", "wipe"),
        settings=_COMPACTED,
        workload=_KEYED,
        dead_brokers_max=1,
        healed_ms_min=1_500,
    ),
    # Uncommitted records of a cut leader outlast a segment, and replace committed ones of a few keys (rule 31).
    Portfolio(
        name="compacted-cuts",
        kinds=("cut", "cut", "cut", "pause"),
        shapes=(Shape.ISOLATE, Shape.FROM_BROKERS, Shape.MUTE, Shape.DEAF, Shape.NO_FETCH),
        settings=_COMPACTED,
        workload=msgspec.structs.replace(_KEYED, keys=2, writes_per_second=60.0),
        fault_ms_max=6_000,
        dead_brokers_max=1,
        healed_ms_min=1_500,
    ),
    # Of a topic that nothing is cleaned of for an hour, each record is read.
    Portfolio(
        name="compacted-later",
        kinds=("kill", "stop", "move"),
        settings={**_COMPACTED, "min.compaction.lag.ms": 3_600_000},
        workload=_KEYED,
        dead_brokers_max=1,
    ),
)  # fmt: skip


_PROTOCOLS: Final[Mapping[str, tuple[Any, ...]]] = {"group.protocol": ("classic", "consumer")}


def _coordinated(
    name: str, family: str, settings: Mapping[str, Any], workload: WorkloadPlan, partitions: int
) -> tuple[Portfolio, Portfolio]:
    """The portfolios of what a coordinator decides, which ``family`` attacks."""
    drawn = _PROTOCOLS if kind_of(workload).grouped else {}
    common: Mapping[str, Any] = {
        "settings": settings, "drawn": drawn, "workload": workload, "partitions": partitions,
    }  # fmt: skip
    return (
        Portfolio(name=name, families=(family, "kill", "pause", "partition"), **common),
        Portfolio(name=f"{name}-and-moves", kinds=_MOVES, shapes=_SINGLE_LINKS, faults=(5, 10), **common, **_BRIEF),
    )


_COMMITTED: Final = _IDEMPOTENT | {"isolation.level": "read_committed"}
#: The same for what only transactions can show.
TRANSACTIONAL: Final = (
    *_coordinated("transactions", "transaction-coordinator", _COMMITTED, IN_TRANSACTIONS, 2),
    Portfolio(
        name="late-messages-of-transactions",
        kinds=("hold", "hold", "move", "cut", "kill"),
        settings=_COMMITTED,
        workload=IN_TRANSACTIONS,
        partitions=2,
        **_BRIEF,
    ),
)

_MEMBERS: Final = _IDEMPOTENT | {"session.timeout.ms": 1_500}
#: The same for what only consumer groups can show.
GROUPED: Final = (
    *_coordinated("groups", "coordinator", _MEMBERS, IN_GROUPS, 3),
    # Only what a library commits by itself is on its way when the group has another generation.
    Portfolio(
        name="late-commits-of-groups",
        kinds=("late-commit", "late-commit", "late-commit", "move", "kill"),
        settings=_MEMBERS | {"commit.mode": "auto"},
        drawn=_PROTOCOLS,
        workload=IN_GROUPS,
        partitions=3,
        **_BRIEF,
    ),
)
_PIPED: Final[Mapping[str, Any]] = {
    "settings": _COMMITTED | _MEMBERS | {"delivery.timeout.ms": 3_000, "transaction.timeout.ms": 4_000},
    "drawn": _PROTOCOLS,
    "workload": IN_PIPELINES,
    "partitions": 3,
}
#: The same for what only offsets in transactions can show. Nothing is cut: a coordinator that missed its election
#: answers who is no member from what it knew (rule 44), and this workload asks so in its midst.
PIPELINED: Final = (
    Portfolio(name="pipelines", families=("coordinator", "transaction-coordinator", "kill", "pause"), **_PIPED),
    Portfolio(name="pipelines-and-moves", kinds=("move", "move", "kill", "stop", "pause"), **_PIPED),
)


def portfolios_for(changed: Mapping[str, Any]) -> tuple[Portfolio, ...]:
    """The portfolios in which a hunt looks for what these settings do wrong."""
    transactional = "transaction.version" in changed or changed.get("planted.bug") in OF_TRANSACTIONS
    if transactional:
        return TRANSACTIONAL
    if changed.get("planted.bug") in OF_GROUPS:
        return GROUPED
    if changed.get("planted.bug") in OF_PIPELINES:
        return PIPELINED
    policy = changed.get("cleanup.policy")
    return PORTFOLIOS if policy is None else tuple(each for each in PORTFOLIOS if each.fits(policy))


#: Settings of further runs, of the core as it is, under every family in virtual time and their mixtures.
_SAFE: Final[Mapping[str, Mapping[str, Any]]] = {
    "in-sync": _IDEMPOTENT,
    "eligible": _ELIGIBLE | _FLUSHED,
    "all-replicas": _UNCLEAN | {"min.insync.replicas": 3},
    "majority": _MAJORITY,
}
_MIXED: Final = ("kill", "pause", "stop", "cut", "cut", "slow", "hold", "move", "power", "wipe", "corrupt", "fail")
#: Faults that a cluster in virtual time cannot do.
_LACKING: Final = {
    Capability.CLOCKS,
    Capability.DISK_SPACE,
    Capability.DISK_SPEED,
    Capability.REASSIGNMENT,
    Capability.SUCCESSION,
}

#: Families for compacted topics, which these further runs do not have.
_COMPACTING: Final = {"away", "away-wiped"}


def _everything() -> Iterator[Portfolio]:
    yield from (*PORTFOLIOS, *TRANSACTIONAL, *GROUPED, *PIPELINED)
    families = tuple(name for name in FAMILIES if not needs_of(name) & _LACKING and name not in _COMPACTING)
    for settings, changed in _SAFE.items():
        for family in families:
            yield Portfolio(
                name=f"{settings}/{family}",
                settings=changed,
                families=(family,),
                racks=_RACKS,
                log_dirs=2,
                partitions=3,
            )
        yield Portfolio(
            name=f"{settings}/all-families", settings=changed, families=families, racks=_RACKS, log_dirs=2, partitions=3
        )
        yield Portfolio(name=f"{settings}/storms", settings=changed, kinds=_MIXED, log_dirs=2, partitions=2)


#: For hunts in the core as it is.
EVERYTHING: Final = tuple(_everything())
