"""Shows a run with commands of an operator's own without doing it: every command in its order, with its observation.

No connection is opened. Answers are imagined: each command works, and the first replica that runs leads.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from harness.plan import Existing, RunSpec, require_kind
from harness.records.journal import FILE_NAME, Journal
from harness.worlds.existing import existing_lacks
from harness.worlds.hosts import CommandedNodes, CommandEnd, Show
from harness.worlds.simulated.loop import Loop
from nemesis.cluster import Capability, ClusterView, PartitionView, Target
from nemesis.player import Player
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import LogPartition, in_toml


def rehearse_commands(spec: RunSpec, schedule: Schedule, say: Show) -> None:
    """Show what the run ``spec``, with commands, and with this schedule would do."""
    commands = require_kind(spec.world, Existing).commands
    if commands is None:
        return

    def show(words: tuple[str, ...], limit_s: float, token: str) -> CommandEnd:
        say(f"{'run' if token else 'run or observe'}, {limit_s:g} s at most: {in_toml(list(words))}")
        return CommandEnd(0, "imagined")

    with TemporaryDirectory(prefix="ackproof-dry-") as name:
        journal, loop = Journal(Path(name) / FILE_NAME), Loop()
        nodes, lacks = CommandedNodes(commands, journal, show), existing_lacks(spec)
        view = _imagined(spec, tuple(sorted(dict(commands.nodes))))
        target = Target(
            view=lambda: view,
            processes=None if Capability.PROCESSES in lacks else nodes,
            links=None if Capability.LINKS in lacks else nodes,
            lacks=lacks,
        )

        def witness(receipt: Receipt) -> None:
            words = receipt.reason if receipt.mark == "skipped" else f"{receipt.fault} of {receipt.role}"
            say(f"# at {loop.now_us() / 1e6:.2f} s, {receipt.mark}: {words}")

        player = Player(schedule, target, loop, dead_brokers_max=spec.faults.dead_brokers_max, witness=witness)
        player.start()
        loop.run(lambda: False, spec.workload.duration_ms * 1_000)
        player.heal_all()
        nodes.close()
        journal.close()


def _imagined(spec: RunSpec, brokers: tuple[int, ...]) -> ClusterView:
    copies = spec.chosen().replication_factor
    partitions = {}
    for number in range(spec.workload.partitions):
        replicas = tuple(brokers[(number + copy) % len(brokers)] for copy in range(min(copies, len(brokers))))
        state = PartitionView(leader=replicas[0], leader_epoch=0, isr=replicas, replicas=replicas)
        partitions[str(LogPartition(spec.workload.topic, number))] = state
    return ClusterView(partitions, brokers, brokers, controllers=(), running_controllers=())
