"""The cluster itself: the world of a run, without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.errors import PlanError
from harness.plan import Kafka, RunSpec, parse_plan
from harness.runs.cluster.by_hand import ByHand, ClusterRequest
from harness.runs.cluster.cluster_socket import ClusterAnswer, served
from harness.runs.cluster.guarded import Doors, Guard, GuardedKafka
from harness.worlds.contract import NodeCrash
from harness.worlds.kafka import kafka_world
from harness.worlds.processes import processes_world
from nemesis.receipts import Receipt, to_json
from workloads import InstanceExit, in_toml
from workloads.driver import Instances

#: Every receipt, one a line.
RECEIPTS_FILE: Final = "receipts.jsonl"
#: The directory with the keys and the password of a cluster that asks for them.
GUARD: Final = "access"
#: Nodes end by themselves after this, where no process is left to end them.
HOURS_MAX: Final = 12
_LOOK_EVERY_US: Final = 1_000_000


def planned(
    world: str,
    *,
    settings: Mapping[str, object],
    brokers: int = 3,
    topic: str = "playground",
    partitions: int = 1,
    families: Sequence[str] = ("kill",),
    guarded: bool = False,
    application: str = "",
    instances: int = 2,
    **of_world: str,
) -> RunSpec:
    """The run whose world is to be brought up; ``of_world`` are keys of the world's table in a plan.

    ``guarded``: its clients need TLS or SASL. ``application`` is the command of a program that reads the topic.

    Raises:
        PlanError: it cannot be had like that.
    """
    if guarded and world != "kafka":
        raise PlanError("the reference broker speaks neither TLS nor SASL; add --world kafka, or leave them out")
    own = "".join(f"{key} = {in_toml(value)}\n" for key, value in of_world.items() if value)
    program = ""
    if application:
        program = (
            f'[application]\ncommand = {in_toml(application)}\ninstances = {instances}\npromise = "at-least-once"\n'
        )
    text = (
        f"brokers = {brokers}\nfamilies = {in_toml(['+'.join(dict.fromkeys(families))])}\n"
        f"[workload]\ntopic = {in_toml(topic)}\npartitions = {partitions}\nduration_ms = {HOURS_MAX * 3_600_000}\n"
        f"{program}[worlds.{world}]\n{own}"
    )
    return parse_plan(text, "ackproof cluster up", settings, name="cluster").single(None, None, 0)


class ClusterByHand:
    """A cluster with one topic, in a new directory of its own. Closing it leaves files there, and nothing else."""

    def __init__(self, spec: RunSpec, directory: Path, *, tls: bool = False, sasl: bool = False) -> None:
        self._directory = directory
        self._guarded: GuardedKafka | None = None
        if tls or sasl:
            self._guarded = GuardedKafka(spec, Guard(directory / GUARD, tls=tls, sasl=sasl))
        self._application = spec.workload.application
        self._instances: Instances | None = None
        if isinstance(spec.world, Kafka):
            self._world = kafka_world(spec, directory, self._guarded)
        else:
            self._world = processes_world(spec, directory)

    def open(self) -> Doors:
        """Start the nodes; the answer is the way to them.

        Raises:
            HarnessError: it did not come up, and nothing is left of it.
        """
        self._world.open()
        if self._application is not None and self._world.instances is not None:
            self._instances = Instances(self._application, self._world.instances, self._world.clock)
            self._instances.start_all()
        return Doors(self._world.clients.bootstrap) if self._guarded is None else self._guarded.doors()

    def serve(self, crashed: Callable[[NodeCrash], None], ended: Callable[[InstanceExit], None]) -> None:
        """Do what is asked for, until an exception ends it, Ctrl-C first of all; then nothing of it is left.

        ``crashed`` is given every node that ends by itself, ``ended`` every end of an instance of the application.
        """
        target = msgspec.structs.replace(self._world.target, instances=self._instances)
        by_hand = ByHand(target, self._world.clock.now_us, self._keep)

        def answer(request: ClusterRequest) -> ClusterAnswer:
            return ClusterAnswer(receipts=by_hand.answer(request), view=by_hand.view())

        reported = told = 0
        with served(self._directory, self._world.clock.post, answer):
            while True:
                self._world.drive(lambda: False, self._world.clock.now_us() + _LOOK_EVERY_US)
                crashes = self._world.crashes()
                for crash in crashes[reported:]:
                    crashed(crash)
                reported = len(crashes)
                exits = [] if self._instances is None else self._instances.exits
                for end in exits[told:]:
                    ended(end)
                told = len(exits)

    def close(self) -> None:
        """End it. Idempotent."""
        if self._instances is not None:
            self._instances.kill_all()
        self._world.close()
        if self._guarded is not None:
            self._guarded.close()

    def _keep(self, receipt: Receipt) -> None:
        with (self._directory / RECEIPTS_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{to_json(receipt)}\n")
