"""Portfolios: under which settings, with which faults and how many writes a hunt looks for what is wrong.

A portfolio is not made for a bug. It is a choice of settings that people use, or that a release had, and of faults
that its promise covers at least in part. What a run may lose is never a finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from harness.ground.choices import Choices, derived_seed
from harness.lab.search.storms import CUTS, FAULTS_A_STORM, KINDS, Storms
from harness.plan import RunSpec, Simulated, timings_of
from nemesis.plan import FaultPlan
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


class Portfolio(msgspec.Struct, frozen=True, kw_only=True):
    """One choice: settings beside :data:`QUICK`, and scenarios of ``families``, or storms.

    Each run draws one value of each of the settings ``drawn``. ``price`` is the time of a run, that of plain writes
    being 1; a portfolio has ``share`` parts of a hunt's time: more where what it finds is rare, less where others find
    the same.

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
    price: float = 1.0
    share: float = 1.0
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


RACKS: Final = ("a", "b", "c")
_PATIENT: Final = {"request.timeout.ms": 6_000, "delivery.timeout.ms": 12_000}
_IMPATIENT: Final = {"request.timeout.ms": 1_500, "delivery.timeout.ms": 2_000}
IDEMPOTENT: Final = {"enable.idempotence": True}
ELIGIBLE: Final = {"eligible.leader.replicas": True}
FLUSHED: Final = {"flush.messages": 1}
UNCLEAN: Final = {"unclean.leader.election.enable": True}
MAJORITY: Final = {"commit.rule": "majority", "leader.election": "largest-epoch-and-log-end"}
#: As in production, no broker leaves the ISR, and few are fenced, while links are down for a second or two.
_SLOW_TO_SHRINK: Final = {"replica.lag.time.max.ms": 10_000, "broker.session.timeout.ms": 4_000}
BRIEF: Final[Mapping[str, Any]] = {"fault_ms_max": 1_200, "healed_ms_min": 400}
#: Each fault is over, and what it destroyed is fetched again, before the next one.
_ONE_BY_ONE: Final[Mapping[str, Any]] = {"fault_ms_max": 600, "healed_ms_min": 3_000}
#: A record replaces or deletes another within a second or two; tombstones stay for longer than any run.
_KEYED: Final = msgspec.structs.replace(WORKLOAD, name="keyed", keys=6)
CLEANED: Final[Mapping[str, Any]] = {"segment.ms": 100, "min.cleanable.dirty.ratio": 0.01}
COMPACTED: Final[Mapping[str, Any]] = {**CLEANED, "enable.idempotence": True, "cleanup.policy": "compact"}
_NETWORK: Final = ("kill", "pause", "cut", "cut", "hold", "slow")
MOVES: Final = ("move", "move", "cut", "cut", "cut", "kill")

#: One broker and the others, or the controller; and what is between two brokers, or one and the controller.
_OF_ONE: Final = (Shape.FROM_BROKERS, Shape.ISOLATE, Shape.DEAF, Shape.MUTE)
SINGLE_LINKS: Final = (Shape.FROM_CONTROLLER, Shape.BRIDGE, Shape.BRIDGE, Shape.ISOLATE, Shape.ISOLATE, Shape.NO_FETCH)

#: The portfolios of plain writes, and of writes with keys.
PORTFOLIOS: Final = (
    Portfolio(name="stories", families=("kill", "pause", "partition"), share=0.5),
    # What takes several links of different brokers, cut in turn while leadership moves, needs many faults (rule 30).
    Portfolio(
        name="moves",
        kinds=MOVES,
        shapes=SINGLE_LINKS,
        faults=(7, 14),
        settings=_SLOW_TO_SHRINK,
        price=1.5,
        share=2.0,
        **BRIEF,
    ),
    Portfolio(name="network", kinds=_NETWORK, settings=IDEMPOTENT),
    Portfolio(
        name="patient-clients", kinds=("pause", "pause", "cut", "kill"), settings=_PATIENT | IDEMPOTENT, share=0.5
    ),
    Portfolio(
        name="eligible",
        kinds=("kill", "power", "stop", "cut", "wipe"),
        settings=ELIGIBLE | FLUSHED,
        dead_brokers_max=3,
        share=0.5,
    ),
    Portfolio(name="eligible-stories", families=("power", "wipe"), settings=ELIGIBLE, healed_ms_min=2_500, share=0.5),
    Portfolio(
        name="flushed", families=("power",), settings=FLUSHED, dead_brokers_max=3, healed_ms_min=2_500, share=0.5
    ),
    Portfolio(
        name="every-replica",
        kinds=("wipe", "late-fetch", "late-fetch", "kill"),
        shapes=_OF_ONE,
        settings={"min.insync.replicas": 3},
        dead_brokers_max=1,
        healed_ms_min=1_500,
        share=1.5,
    ),
    Portfolio(name="late-messages", kinds=("hold", "hold", "move", "cut", "kill"), **BRIEF, share=2.0),
    Portfolio(name="damaged-records", kinds=("corrupt", "move"), dead_brokers_max=1, **_ONE_BY_ONE, share=1.5),
    Portfolio(name="outage", families=("outage", "kill"), settings={"min.insync.replicas": 1}, share=0.5),
    Portfolio(name="destroyed-copies", families=("wipe", "log-directory"), healed_ms_min=2_500, log_dirs=2, share=0.5),
    Portfolio(name="operators", kinds=("stop", "stop", "move", "kill", "cut"), settings=IDEMPOTENT),
    Portfolio(name="one-in-sync", kinds=_NETWORK, settings={"min.insync.replicas": 1}, share=1.5),
    Portfolio(
        name="release-2.1",
        kinds=("move", "move", "cut", "cut", "slow"),
        shapes=SINGLE_LINKS,
        settings=_SLOW_TO_SHRINK | {"truncation": "kip-320"},
        **BRIEF,
        price=1.3,
        share=4.0,
    ),
    Portfolio(name="release-3.5", kinds=_NETWORK, settings=_IMPATIENT | {"strict.min.isr": False}),
    Portfolio(name="majority", kinds=_NETWORK, settings=MAJORITY, share=0.5),
    Portfolio(name="eligible-unclean", kinds=("kill", "stop", "cut", "pause"), settings=ELIGIBLE | UNCLEAN, share=3.0),
    Portfolio(
        name="new-producers",
        kinds=("controller", "crash", "crash", "kill", "move"),
        settings=IDEMPOTENT,
        producers=4,
        **BRIEF,
    ),
    Portfolio(
        name="away-and-wiped",
        kinds=("cut", "cut", "wipe"),
        shapes=(Shape.FROM_CONTROLLER, Shape.FROM_CONTROLLER, Shape.NO_HEARTBEAT),
        dead_brokers_max=1,
    ),
    Portfolio(name="stops-and-power", kinds=("stop", "stop", "power", "kill"), healed_ms_min=1_500),
    Portfolio(
        name="moves-of-producers", kinds=MOVES, shapes=SINGLE_LINKS, faults=(7, 14), settings=IDEMPOTENT, **BRIEF,
        price=1.3,
    ),
    Portfolio(name="near-reads", kinds=(*MOVES, "pause"), settings={"follower.fetching": True}, racks=RACKS, share=0.5),
    Portfolio(
        name="compacted",
        kinds=("kill", "stop", "cut", "cut", "pause", "move", "wipe"),
        settings=COMPACTED,
        workload=_KEYED,
        dead_brokers_max=1,
        healed_ms_min=1_500,
        price=1.3,
        share=0.5,
    ),
    # Uncommitted records of a cut leader outlast a segment, and replace committed ones of a few keys (rule 31).
    Portfolio(
        name="compacted-cuts",
        kinds=("cut", "cut", "cut", "pause"),
        shapes=(Shape.ISOLATE, Shape.FROM_BROKERS, Shape.MUTE, Shape.DEAF, Shape.NO_FETCH),
        settings=COMPACTED,
        workload=msgspec.structs.replace(_KEYED, keys=2, writes_per_second=60.0),
        fault_ms_max=6_000,
        dead_brokers_max=1,
        healed_ms_min=1_500,
        price=2.0,
        share=2.5,
    ),
    # Of a topic that nothing is cleaned of for an hour, each record is read.
    Portfolio(
        name="compacted-later",
        kinds=("kill", "stop", "move"),
        settings={**COMPACTED, "min.compaction.lag.ms": 3_600_000},
        workload=_KEYED,
        dead_brokers_max=1,
        price=1.3,
        share=0.5,
    ),
    # Tombstones go within a run, as soon as each replica is past them. No fault keeps a reader away from them.
    Portfolio(
        name="compacted-for-good",
        kinds=("kill", "stop", "move", "pause", "wipe"),
        settings={**COMPACTED, "delete.retention.ms": 2_000, "tombstones.wait.for.replicas": True},
        workload=_KEYED,
        dead_brokers_max=1,
        healed_ms_min=1_500,
        fault_ms_max=1_500,
        price=1.5,
    ),
    # Segments go by their age while others are written.
    Portfolio(
        name="expiring",
        kinds=("kill", "stop", "move", "cut", "pause"),
        settings=IDEMPOTENT | {"segment.ms": 500, "retention.ms": 5_000},
        workload=msgspec.structs.replace(WORKLOAD, duration_ms=16_000),
        healed_ms_min=1_500,
        price=1.3,
    ),
    # Of two messages the first arrives last.
    Portfolio(
        name="overtaken-messages",
        kinds=("overtaken-produce", "overtaken-proposal", "overtaken-proposal", "overtaken-fetch", "move", "cut"),
        settings=IDEMPOTENT,
        **BRIEF,
        share=1.5,
    ),
)  # fmt: skip
