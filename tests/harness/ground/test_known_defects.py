"""The file of known defects, from which assessments and campaigns take what they say of them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from checkers import ANOMALIES
from harness.campaigns.comparison import Ran, fits, ran_by
from harness.ground.known_defects import every_defect, looked_at, product_findings
from harness.ground.machine.versions import this_machine
from harness.records.campaign_record import CampaignRecord, WorldRuns
from tests.harness.campaigns.comparison.conftest import night, run_lines
from workloads import Settings

ROOT = Path(__file__).parents[3]
#: The settings of every cell here, if nothing else is said: acks=all with idempotence.
SAFE = Settings(enable_idempotence=True, min_insync_replicas=2)
#: The mark of finding 008.
(MARK,) = {mark for defect in product_findings()["008"].defect for mark in defect.marks.values()}


def a_record(**worlds: WorldRuns) -> CampaignRecord:
    return CampaignRecord(
        name="n", seed=1, status="completed", began="", command="", machine=this_machine(), versions={}, worlds=worlds
    )


def numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def test_every_page_of_a_finding_is_in_the_file_once() -> None:
    pages = sorted(page.name for page in (ROOT / "docs" / "findings").glob("*.md"))
    assert [finding.page for finding in product_findings().values()] == pages
    assert [finding.page[:3] for finding in product_findings().values()] == list(product_findings())


def test_every_defect_is_whole() -> None:
    defects = every_defect()
    assert len({defect.name for defect in defects}) == len(defects)
    for defect in defects:
        bounds = [numbers(bound) for pair in defect.affected for bound in pair if bound]
        assert bounds, defect.name
        assert all(before < after for before, after in pairwise(bounds)), defect.name
        assert defect.link.startswith(("https://", "docs/")), defect.name
        assert defect.link.startswith("https://") or (ROOT / defect.link).is_file(), defect.name
        assert all((defect.title, defect.harm, defect.change, defect.price)), defect.name


def test_the_releases_that_were_looked_at_are_those_of_the_entries() -> None:
    looked = looked_at()
    for defect in every_defect():
        oldest, newest = map(numbers, looked[defect.of])
        assert all(oldest <= numbers(first) <= newest for first, _ in defect.affected), defect.name
    for of, (oldest_release, _) in looked.items():
        firsts = [numbers(first) for each in every_defect() if each.of == of for first, _ in each.affected]
        assert not firsts or min(firsts) == numbers(oldest_release), of
    assert {each.of for each in every_defect()} == looked.keys() - {"franz-go", "sarama"}, "looked at, nothing found"


@pytest.mark.parametrize(
    "name",
    ["KAFKA-13598", "KAFKA-7897", "KAFKA-12670", "KAFKA-20254", "KAFKA-20416", "KAFKA-18019", "KAFKA-19858"],
)
def test_an_entry_says_where_its_releases_were_read(name: str) -> None:
    (defect,) = (each for each in every_defect() if each.name == name)
    assert re.search(r"pull requests? \d{4,5}", defect.read)


def test_a_defect_of_the_projects_own_findings_says_what_a_history_shows_and_no_other_does() -> None:
    own = {defect.name for finding in product_findings().values() for defect in finding.defect}
    for defect in every_defect():
        assert bool(defect.anomalies) is (defect.name in own), defect.name
        assert defect.anomalies <= ANOMALIES.keys()


@pytest.mark.parametrize(
    ("number", "world", "client", "anomaly", "settings", "fitting"),
    [
        ("001", "simulated", "confluent-kafka", "lost-write", SAFE, True),
        ("001", "kafka", "java", "lost-write", SAFE, False),
        ("001", "kafka", "confluent-kafka", "lost-write", Settings(), False),
        ("002", "kafka", "", "lost-write", SAFE, True),
        ("002", "kafka", "", "lost-write", Settings(acks=1), False),
        ("002", "processes", "", "lost-write", SAFE, False),
        ("003", "processes", "confluent-kafka", "duplicate", SAFE, True),
        ("003", "processes", "java", "duplicate", SAFE, False),
        ("004", "simulated", "java", "duplicate", SAFE, True),
        ("005", "kafka", "java", "duplicate", SAFE, True),
        ("006", "kafka", "", "returned-key", Settings(cleanup_policy="compact"), True),
        ("006", "kafka", "", "returned-key", SAFE, False),
        ("006", "kafka", "", "returned-group", SAFE, True),
        ("007", "kafka", "", "group-went-back", SAFE, True),
        ("007", "kafka", "", "torn-transaction", SAFE, True),
        ("008", "kafka", "", "aborted-read", SAFE, True),
        ("009", "kafka", "", "torn-transaction", SAFE, True),
        ("009", "kafka", "", "lost-write", SAFE, False),
        ("010", "kafka", "confluent-kafka", "group-skip", SAFE, True),
        ("010", "kafka", "java", "group-skip", SAFE, False),
        ("011", "kafka", "java", "group-went-back", SAFE, True),
        ("011", "processes", "java", "group-went-back", SAFE, False),
        ("012", "kafka", "java", "group-went-back", SAFE, True),
        ("012", "processes", "java", "group-went-back", SAFE, False),
        ("013", "kafka", "confluent-kafka", "reordered", Settings(enable_idempotence=False, max_in_flight=1), True),
        ("013", "kafka", "java", "reordered", Settings(enable_idempotence=False, max_in_flight=1), False),
        ("013", "kafka", "confluent-kafka", "reordered", Settings(enable_idempotence=False), False),
        ("014", "kafka", "kafka-python", "doubled-effect", SAFE, True),
        ("014", "kafka", "java", "doubled-effect", SAFE, False),
        ("015", "kafka", "confluent-kafka", "group-went-back", SAFE, True),
        ("015", "processes", "confluent-kafka", "group-went-back", SAFE, False),
    ],
)
def test_a_finding_fits_by_client_world_anomaly_and_settings(
    *, number: str, world: str, client: str, anomaly: str, settings: Settings, fitting: bool
) -> None:
    (cell,) = night("1", run_lines(settings, runs=1, world=world)).cells.values()
    brokers = ran_by(None, cell)
    marked = msgspec.structs.replace(cell, marks={"1": MARK})
    assert fits(product_findings()[number], marked, (anomaly, "1"), [*brokers, Ran(client)]) is fitting


def test_finding_008_is_told_by_its_mark() -> None:
    (cell,) = night("1", run_lines(SAFE, runs=1, world="kafka")).cells.values()
    marked = msgspec.structs.replace(cell, marks={"1": MARK})
    finding, kafka = product_findings()["008"], ran_by(None, cell)
    assert fits(finding, marked, ("torn-transaction", "1"), kafka)
    assert not fits(finding, marked, ("torn-transaction", "2"), kafka)


@pytest.mark.parametrize(
    ("release", "fitting"),
    [
        ("", True),
        ("3.9.2", True),
        ("4.0.2", True),
        ("4.0.3", False),
        ("4.2.1", True),
        ("4.2.2", False),
        ("4.3.0", True),
        ("4.3.1", False),
        ("4.4.0", False),
    ],
)
def test_a_finding_does_not_fit_a_release_without_it(*, release: str, fitting: bool) -> None:
    (cell,) = night("1", run_lines(SAFE, runs=1, world="kafka")).cells.values()
    finding = product_findings()["012"]
    assert fits(finding, cell, ("group-went-back", ""), [Ran("kafka", release)]) is fitting
    record = a_record(kafka=WorldRuns(planned=1, version=release or msgspec.UNSET))
    assert ran_by(record, cell) == [Ran("kafka", release)]


def test_a_finding_of_a_client_looks_at_each_release_that_took_turns() -> None:
    (cell,) = night("1", run_lines(SAFE, runs=1, world="processes")).cells.values()
    defect = msgspec.structs.replace(product_findings()["004"].defect[0], affected=[("2.8.0", "4.2.0")])
    finding = msgspec.structs.replace(product_findings()["004"], defect=(defect,))
    record = a_record(
        processes=WorldRuns(planned=1, client="java", client_version="4.3.1", other_clients=("java:3.9.2",))
    )
    assert fits(finding, cell, ("duplicate", ""), ran_by(record, cell))
    record.worlds["processes"].other_clients = ("java:4.2.0",)
    assert not fits(finding, cell, ("duplicate", ""), ran_by(record, cell))
