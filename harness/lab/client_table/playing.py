"""Plays cells with clients, all on one cluster of the reference broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.ground.errors import HarnessError
from harness.ground.machine.versions import own_version
from harness.ground.progress import Progress
from harness.lab.client_table.cell import CellSeen, ClientCell
from harness.lab.client_table.stage import CellStage, Planted
from harness.lab.findings import NotObservedError, OpenCluster
from harness.plan import ClientChoice, ClientProgram, Processes, RunSpec
from harness.records.client_table_file import CellOutcome, CellResult, ClientTable, TableCell, TableClient
from harness.worlds.clients import ClientLibrary
from harness.worlds.kafka import client_library
from harness.worlds.processes import processes_world
from nemesis.plan import FaultPlan
from workloads import Settings, WorkloadPlan

#: The settings of the cluster and of its own clients: a machine that stands still for seconds must not move leaders.
_SETTINGS: Final = {
    "enable.idempotence": True,
    "request.timeout.ms": 15_000,
    "delivery.timeout.ms": 40_000,
    "broker.session.timeout.ms": 30_000,
    "transaction.timeout.ms": 60_000,
    "replica.lag.time.max.ms": 30_000,
}
#: Tries of a cell whose situation does not occur: on a busy machine a client may come too late for it.
_TRIES: Final = 3


@contextmanager
def table_cluster(directory: Path) -> Iterator[OpenCluster]:
    """A cluster for cells; its files are in ``directory``."""
    spec = RunSpec(
        world=Processes(client="confluent-kafka"),
        cell="clients",
        family="kill",
        settings=Settings.from_mapping(_SETTINGS).to_mapping(),
        workload=WorkloadPlan(),
        faults=FaultPlan(),
        seed=1,
    )
    world = processes_world(spec, directory)
    try:
        world.open()
        yield OpenCluster(world, directory)
    finally:
        world.close()


def client_table(
    clients: Sequence[ClientChoice], cells: Mapping[str, ClientCell], directory: Path, progress: Progress
) -> Iterator[ClientTable]:
    """Play every cell with every client, each client on a cluster of its own; the table so far after each client.

    A client that cannot be started, or whose process or cluster fails, is told with the reason, and keeps what it has.
    """
    told: list[TableClient] = []
    results: list[CellResult] = []
    with progress.phase("cells", len(clients) * len(cells)):
        for number, choice in enumerate(clients):
            started_by = choice.name if isinstance(choice, ClientProgram) else choice
            own, name, failed = directory / str(number), started_by, ""
            own.mkdir()
            try:
                with table_cluster(own) as cluster, ExitStack() as resources:
                    library = client_library(Processes(client=choice), own, resources)
                    taken = any(each.name == library.name for each in told)
                    name = f"{library.name} ({started_by})" if taken else library.name
                    for cell in cells.values():
                        progress.advance(f"{name}: {cell.name}")
                        results.append(play(cell, replace(library, name=name), cluster))
            except HarnessError as error:
                failed = str(error)
            told.append(TableClient(name=name, started_by=started_by, failed=failed))
            yield ClientTable(
                by=own_version(),
                clients=tuple(told),
                cells=tuple(map(_described, cells.values())),
                results=tuple(results),
            )


def play(cell: ClientCell, library: ClientLibrary, cluster: OpenCluster, planted: Planted | None = None) -> CellResult:
    """Play a cell with a client library, until its situation occurs; ``planted`` puts a fault into its clients."""
    if lacking := [why for need, why in library.lacks.items() if need in cell.needs]:
        return CellResult(client=library.name, cell=cell.name, outcome=CellOutcome.NOT_SUPPORTED, why=lacking[0])
    for _ in range(_TRIES):
        result = _played(cell, library, cluster, planted)
        if result.outcome is not CellOutcome.NOT_MET:
            break
    return result


def _played(cell: ClientCell, library: ClientLibrary, cluster: OpenCluster, planted: Planted | None) -> CellResult:
    stage = CellStage(cluster, library, cell.name, planted)
    try:
        seen = cell.play(stage)
    except NotObservedError as error:
        seen = CellSeen(stage.sent.breaches, unmet=str(error))
    finally:
        stage.close()
    cluster.wait("the cluster is well", cluster.is_well)
    return _judged(cell, library.name, seen, stage.history)


def _judged(cell: ClientCell, client: str, seen: CellSeen, history: Sequence[str]) -> CellResult:
    permitted = [cell.permits[breach] for breach, _ in seen.breaches if breach in cell.permits]
    if len(permitted) < len(seen.breaches):
        outcome, why = CellOutcome.BROKEN, ""
    elif seen.unmet:
        outcome, why = CellOutcome.NOT_MET, seen.unmet
    else:
        outcome, why = (CellOutcome.PERMITTED, permitted[0]) if permitted else (CellOutcome.KEPT, "")
    return CellResult(
        client=client,
        cell=cell.name,
        outcome=outcome,
        why=why,
        breaches=tuple((str(breach), sentence) for breach, sentence in seen.breaches),
        account=tuple(seen.facts),
        history=tuple(history),
    )


def _described(cell: ClientCell) -> TableCell:
    return TableCell(name=cell.name, happens=cell.happens, expects=cell.expects, finding=cell.finding)
