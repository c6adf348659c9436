"""Each cell is red for a client with the fault that it is about, and the findings come out as their pages say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.lab.client_table import CELLS, play, table_cluster
from harness.lab.findings import OpenCluster
from harness.plan import Processes
from harness.records.client_table_file import CellOutcome
from harness.worlds.clients import CONFLUENT, JAVA, KAFKA_PYTHON, ClientLibrary
from harness.worlds.kafka import client_library
from harness.worlds.kafka.installation import Installation
from tests.harness.lab.client_table.planted import PLANTED

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCluster]:
    with table_cluster(tmp_path_factory.mktemp("table")) as opened:
        yield opened


@pytest.mark.parametrize("cell", CELLS.values(), ids=lambda cell: cell.name)
def test_a_client_with_the_fault_of_a_cell_is_red(cell: object, cluster: OpenCluster) -> None:
    result = play(cell, CONFLUENT, cluster, PLANTED[cell.about])
    assert result.outcome is CellOutcome.BROKEN
    assert cell.about in [breach for breach, _ in result.breaches]


@pytest.mark.race  # of the settings of these cells some are short
@pytest.mark.parametrize(
    ("name", "library", "breach"),
    [
        ("refused-before-taken", CONFLUENT, "lost"),
        ("answer-lost-then-refused", CONFLUENT, "doubled"),
        ("expired-in-flight", CONFLUENT, "doubled"),
        ("refused-one-in-flight", CONFLUENT, "reordered"),
        ("begin-unstable-rebalance", CONFLUENT, "repeated"),
        ("left-member", KAFKA_PYTHON, "untrue commit"),
    ],
)
def test_a_finding_comes_out_as_its_page_says(
    name: str, library: ClientLibrary, breach: str, cluster: OpenCluster
) -> None:
    result = play(CELLS[name], library, cluster)
    assert result.outcome is CellOutcome.BROKEN
    assert {word for word, _ in result.breaches} == {breach}


@pytest.mark.race
@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("refused-one-in-flight", KAFKA_PYTHON),
        ("begin-unstable-rebalance", KAFKA_PYTHON),
        ("left-member", CONFLUENT),
        ("refused-in-flight", CONFLUENT),
    ],
)
def test_a_finding_of_another_library_does_not_come_out(
    name: str, library: ClientLibrary, cluster: OpenCluster
) -> None:
    assert play(CELLS[name], library, cluster).outcome is CellOutcome.KEPT


@pytest.mark.parametrize("name", ["fenced-batch", "closed-in-transaction"])
def test_a_java_producer_with_a_fatal_error_answers_each_send_once(
    name: str, cluster: OpenCluster, real_kafka: Installation, tmp_path: Path
) -> None:
    with ExitStack() as resources:
        library = client_library(Processes(client=JAVA), tmp_path, resources)
        assert play(CELLS[name], library, cluster).outcome is CellOutcome.KEPT


def test_a_situation_that_does_not_occur_is_not_met(cluster: OpenCluster) -> None:
    """kafka-python has one batch of a log partition under way."""
    result = play(CELLS["refused-before-taken"], KAFKA_PYTHON, cluster)
    assert (result.outcome, result.why) == (CellOutcome.NOT_MET, "the client had 1 of 4 batches under way")
