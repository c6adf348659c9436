"""A plan that has been read and found possible, and its runs: each as data, with the names that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final, Literal, TypeVar

import msgspec

from harness.ground.choices import derived_seed
from harness.ground.errors import PlanError
from harness.plan.expected import ExpectedOutcomes
from harness.plan.worlds import AnyWorld
from nemesis.plan import FaultPlan
from nemesis.schedule import Schedule, ScheduledFault
from workloads import IDEMPOTENCE, Settings, SettingValue, WorkloadPlan, kind_of, shown, spelled, unknown_name

#: The settings that every cell names.
ALWAYS_NAMED: Final = ("acks", "min.insync.replicas", "unclean.leader.election.enable")
#: Shorter names of settings in a cell's name.
SHORT_NAMES: Final[Mapping[str, str]] = {
    "min.insync.replicas": "isr",
    "unclean.leader.election.enable": "unclean",
    IDEMPOTENCE: "idem",
}
_LONG_NAMES: Final = {short: name for name, short in SHORT_NAMES.items()}


class OwnStory(msgspec.Struct, frozen=True, kw_only=True):
    """A story file that a plan names: its path from the plan's directory, and its whole text."""

    file: str
    text: str


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run: a plan with one choice of settings, one fault family and one seed. Written as ``run.json``.

    ``cell`` names settings and family within the campaign (``acks=all,isr=2,unclean=false/kill``); ``settings`` is
    complete and under Kafka's names. ``client_defaults`` are the names of those that the plan leaves to the client
    library, so that they have its own default. ``racks`` are the brokers' racks in their order, none where they have
    none, ``log_dirs`` how many log directories each has; ``assignment`` are the replicas of each log partition, empty
    where the cluster places them. ``schedule`` has exactly the faults to perform; None where they are drawn. With
    ``chance`` "none" every message takes a millisecond. ``story`` is the number of the scripted story that the run
    performs instead of its workload and faults, and its ``family`` too; empty for all others. ``own_story`` is the file
    that has it, where the plan names one.
    """

    world: AnyWorld
    cell: str
    family: str
    settings: dict[str, SettingValue]
    workload: WorkloadPlan
    faults: FaultPlan
    seed: int
    brokers: int = 3
    client_defaults: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    log_dirs: int = 1
    assignment: tuple[tuple[int, ...], ...] = ()
    schedule: Schedule | None = None
    chance: Literal["drawn", "none"] = "drawn"
    story: str = ""
    own_story: OwnStory | None = None

    def chosen(self) -> Settings:
        """The settings as an object."""
        return Settings.from_mapping(self.settings)

    @property
    def racks_of_brokers(self) -> tuple[str, ...]:
        """The rack of each broker; one without a name is a rack of its own."""
        return self.racks or tuple(f"r{broker}" for broker in range(self.brokers))

    def directory(self) -> PurePosixPath:
        """The directory of the run's files, relative to its campaign; unique within the campaign."""
        return PurePosixPath("runs", self.world.name, self.cell, str(self.seed))


def settings_label(settings: Mapping[str, object], axes: Iterable[str] = ()) -> str:
    """``acks=all,isr=2,unclean=false``, then every other axis of the matrix, most under their full names."""
    named = dict.fromkeys([*ALWAYS_NAMED, *axes])
    return ",".join(f"{SHORT_NAMES.get(name, name)}={spelled(settings[name])}" for name in named)


def unknown_setting(name: str) -> str:
    """A sentence that names the setting nearest to ``name``, which a plan or an option may have from a cell's name."""
    if name in _LONG_NAMES:
        return f"unknown setting {shown(name)}; its name in a plan is {shown(_LONG_NAMES[name])}"
    return unknown_name("setting", name, Settings().to_mapping())


Offered = TypeVar("Offered")


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One choice of settings: complete, under Kafka's names, with the label that cells and paths have for it.

    ``client_defaults`` are the names of those that each world's client library decides, ``release_rules`` of those that
    the release of its brokers does.
    """

    label: str
    settings: dict[str, SettingValue]
    client_defaults: tuple[str, ...] = ()
    release_rules: tuple[str, ...] = ()

    def settings_in(self, world: AnyWorld, *, transactional: bool = False) -> dict[str, SettingValue]:
        """The settings as ``world`` completes them; every client makes a ``transactional`` producer idempotent."""
        settings = self.settings | dict.fromkeys(self.release_rules, world.unclean_elections)
        if IDEMPOTENCE not in self.client_defaults:
            return settings
        possible = Settings.from_mapping(settings).against_idempotence is None
        return settings | {IDEMPOTENCE: possible and (transactional or world.idempotent_by_default)}


class WorldPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a plan for one world: ``runs`` per cell, ``parallel`` at a time (None: one a core)."""

    world: AnyWorld
    runs: int
    workload: WorkloadPlan
    faults: FaultPlan
    parallel: int | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Every choice of settings meets every fault family in every world.

    ``text`` is the file as it was read, ``file`` its path, "" where it had none; ``accepted`` is the text of the
    ``accepted.toml`` beside it.

    A plan with a scripted ``story`` has its number as the only family. One with a ``schedule`` performs exactly these
    faults, and the first run of each cell has the plan's own seed.
    """

    name: str
    seed: int
    brokers: int
    choices: tuple[Choice, ...]
    families: tuple[str, ...]
    worlds: tuple[WorldPlan, ...]
    racks: tuple[str, ...] = ()
    log_dirs: int = 1
    assignment: tuple[tuple[int, ...], ...] = ()
    text: str = ""
    file: str = ""
    accepted: str = ""
    expected: tuple[ExpectedOutcomes, ...] = ()
    schedule: tuple[ScheduledFault, ...] | None = None
    chance: Literal["drawn", "none"] = "drawn"
    story: str = ""
    own_story: OwnStory | None = None

    def runs(self) -> list[RunSpec]:
        """Every run, always in the same order: world by world, one run of every cell before the second of any.

        A run's seed follows from the plan's seed, the cell and the run's number in its cell by SHA-256. So it does not
        move when other cells are added, and every world is given the same schedules.
        """
        return [
            self.drawn(world, choice, family, self._seed(f"{choice.label}/{family}", number))
            for world in self.worlds
            for number in range(world.runs)
            for choice in self.choices
            for family in self.families
        ]

    @property
    def cells(self) -> tuple[str, ...]:
        """The name of each cell of each world: ``simulated/acks=all,isr=2,unclean=false/kill``."""
        cells = [f"{choice.label}/{family}" for choice in self.choices for family in self.families]
        return tuple(f"{world.world.name}/{cell}" for world in self.worlds for cell in cells)

    def _seed(self, cell: str, number: int) -> int:
        given = self.schedule is not None
        return self.seed if given and number == 0 else derived_seed(self.seed, cell, number)

    def drawn(self, world: WorldPlan, choice: Choice, family: str, seed: int) -> RunSpec:
        """The run of one cell of this plan that has this ``seed``."""
        return RunSpec(
            world=world.world,
            cell=f"{choice.label}/{family}",
            family=family,
            settings=choice.settings_in(world.world, transactional=kind_of(world.workload).transactional),
            client_defaults=choice.client_defaults,
            workload=_own_topic(world.workload, world.world, seed),
            faults=msgspec.structs.replace(world.faults, families=() if self.story else tuple(family.split("+"))),
            seed=seed,
            brokers=self.brokers,
            racks=self.racks,
            log_dirs=self.log_dirs,
            assignment=self.assignment,
            schedule=self._schedule(world),
            chance=self.chance if world.world.virtual_time else "drawn",
            story=self.story,
            own_story=self.own_story,
        )

    def _schedule(self, world: WorldPlan) -> Schedule | None:
        if self.schedule is None:
            return None
        steps = sorted(self.schedule, key=lambda step: step.begin_ms)
        return Schedule(steps=tuple(steps), healed_ms=world.workload.duration_ms)

    def single(self, family: str | None, world: str | None, seed: int | None) -> RunSpec:
        """The one run that is left when family and world are chosen; ``seed`` replaces the derived one.

        Raises:
            PlanError: nothing, or more than one cell, is left.
        """
        families, worlds = {f: f for f in self.families}, {str(w.world.name): w for w in self.worlds}
        _refuse_absent("fault family", families, family)
        _refuse_absent("world", worlds, world)
        self._refuse_open(family, world)
        cell = msgspec.structs.replace(
            self,
            families=self.families if family is None else (family,),
            worlds=self.worlds if world is None else (worlds[world],),
        )
        run, workload = cell.runs()[0], cell.worlds[0].workload
        if seed is None:
            return run
        return msgspec.structs.replace(run, seed=seed, workload=_own_topic(workload, run.world, seed))

    def _varied(self) -> dict[str, list[str]]:
        """The values of each setting that cells name, where they differ; those of the first choice are first."""
        label = f",{self.choices[0].label}"
        every = {
            name: [*dict.fromkeys(spelled(choice.settings[name]) for choice in self.choices)]
            for name in self.choices[0].settings
            if f",{SHORT_NAMES.get(name, name)}=" in label
        }
        return {name: values for name, values in every.items() if len(values) > 1}

    def _refuse_open(self, family: str | None, world: str | None) -> None:
        """Refuse more than one cell: each choice that is open, and options that leave one cell."""
        kinds, options = [], []
        if len(self.choices) > 1:
            varied = self._varied()
            kinds.append(f"one choice of settings ({', '.join(f'{name}={_either(varied[name])}' for name in varied)})")
            options.append(f"--settings {','.join(f'{name}={values[0]}' for name, values in varied.items())}")
        if family is None and len(self.families) > 1:
            kinds.append(f"one fault family ({_either(self.families)})")
            options.append(f"--family {self.families[0]}")
        if world is None and len(self.worlds) > 1:
            names = [world.world.name for world in self.worlds]
            kinds.append(f"one world ({_either(names)})")
            options.append(f"--world {names[0]}")
        if kinds:
            raise PlanError(
                f"one run needs {' and '.join(kinds)}: add, for example, {' '.join(options)}; ackproof campaign does "
                "every run"
            )


def _either(names: Iterable[str]) -> str:
    return " | ".join(names)


def _own_topic(workload: WorkloadPlan, world: AnyWorld, seed: int) -> WorkloadPlan:
    return msgspec.structs.replace(workload, topic=world.topic(workload.topic, seed))


def _refuse_absent(kind: str, offered: Mapping[str, Offered], name: str | None) -> None:
    """Refuse a name that the plan does not have, before any choice that is still open."""
    if name is not None and name not in offered:
        raise PlanError(f'the plan has no {kind} "{name}"; it has {" and ".join(offered)}')
