"""The cluster itself: the world of a run, without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.ground.errors import PlanError
from harness.plan import Kafka, RunSpec, parse_plan
from harness.runs.cluster.by_hand import ByHand, ClusterRequest
from harness.runs.cluster.cluster_socket import ClusterAnswer, served
from harness.runs.cluster.guarded import Doors, Guard, GuardedKafka
from harness.worlds.contract import NodeCrash
from harness.worlds.kafka import kafka_world
from harness.worlds.processes import processes_world
from nemesis.receipts import Receipt, to_json
from workloads import in_toml

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
    **of_world: str,
) -> RunSpec:
    """The run whose world is to be brought up; ``of_world`` are keys of the world's table in a plan.

    ``guarded``: its clients need TLS or SASL.

    Raises:
        PlanError: it cannot be had like that.
    """
    if guarded and world != "kafka":
        raise PlanError("the reference broker speaks neither TLS nor SASL; add --world kafka, or leave them out")
    own = "".join(f"{key} = {in_toml(value)}\n" for key, value in of_world.items() if value)
    text = (
        f"brokers = {brokers}\nfamilies = {in_toml(['+'.join(dict.fromkeys(families))])}\n"
        f"[workload]\ntopic = {in_toml(topic)}\npartitions = {partitions}\nduration_ms = {HOURS_MAX * 3_600_000}\n"
        f"[worlds.{world}]\n{own}"
    )
    return parse_plan(text, "ackproof cluster up", settings, name="cluster").single(None, None, 0)


class ClusterByHand:
    """A cluster with one topic, in a new directory of its own. Closing it leaves files there, and nothing else."""

    def __init__(self, spec: RunSpec, directory: Path, *, tls: bool = False, sasl: bool = False) -> None:
        self._directory = directory
        self._guarded: GuardedKafka | None = None
        if tls or sasl:
            self._guarded = GuardedKafka(spec, Guard(directory / GUARD, tls=tls, sasl=sasl))
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
        return Doors(self._world.clients.bootstrap) if self._guarded is None else self._guarded.doors()

    def serve(self, crashed: Callable[[NodeCrash], None]) -> None:
        """Do what is asked for, until an exception ends it, Ctrl-C first of all; then nothing of it is left.

        ``crashed`` is given every node that ends by itself.
        """
        by_hand = ByHand(self._world.target, self._world.clock.now_us, self._keep)

        def answer(request: ClusterRequest) -> ClusterAnswer:
            return ClusterAnswer(receipts=by_hand.answer(request), view=by_hand.view())

        reported = 0
        with served(self._directory, self._world.clock.post, answer):
            while True:
                self._world.drive(lambda: False, self._world.clock.now_us() + _LOOK_EVERY_US)
                crashes = self._world.crashes()
                for crash in crashes[reported:]:
                    crashed(crash)
                reported = len(crashes)

    def close(self) -> None:
        """End it. Idempotent."""
        self._world.close()
        if self._guarded is not None:
            self._guarded.close()

    def _keep(self, receipt: Receipt) -> None:
        with (self._directory / RECEIPTS_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{to_json(receipt)}\n")
