"""Known defects by release, by client and by what is in use; and the file that has them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from harness.assess import Client, Cluster, Release, Topic
from harness.assess.defects import defects_of, needs_met
from harness.assess.grouping import groups_of
from harness.ground.known_defects import every_defect
from harness.lab.client_table import CELLS
from harness.worlds.kafka.releases import parse_version

PLAIN = Client(name="p", library="java", version="4.3.1")
TRANSACTIONAL = Client(name="p", library="java", version="4.3.1", settings={"transactional.id": "t"})
MEMBER = Client(name="c", library="java", version="4.3.1", settings={"group.id": "g"})


def named(
    release: str,
    producer: Client = PLAIN,
    consumers: tuple[Client, ...] = (),
    policy: str = "delete",
    *,
    patch_seen: bool = True,
    features: dict[str, int] | None = None,
    own: Mapping[str, str] | None = None,
    brokers: Mapping[str, str] | None = None,
) -> dict[str, bool]:
    """The names of the defects that apply, and whether that is sure."""
    topic = Topic(name="t", partitions=1, replicas=3, settings={"cleanup.policy": policy, **(own or {})})
    seen = Release(parse_version(release), patch_seen) if release else None
    cluster = Cluster(source="s", topics=(topic,), release=seen, features=features or {}, settings=brokers or {})
    (group,) = groups_of(cluster)
    met = needs_met(group, cluster, producer, consumers)
    return {each.defect.name: each.sure for each in defects_of(cluster, [producer, *consumers], met)}


@pytest.mark.parametrize(
    ("release", "has", "has_not"),
    [
        ("2.7.1", {"KAFKA-13141", "KAFKA-18991"}, {"KAFKA-7235", "KAFKA-15353"}),
        ("3.5.1", {"KAFKA-15353"}, {"KAFKA-13141"}),
        ("0.10.2.2", {"KIP-101", "KAFKA-7128", "KIP-320", "KIP-903"}, {"KAFKA-6361", "finding-002"}),
        ("1.1.1", {"KAFKA-6361", "KAFKA-9254"}, {"KIP-101"}),
        ("2.0.0", {"KAFKA-7128", "KIP-320"}, {"KAFKA-6361"}),
        ("2.0.1", {"KIP-320"}, {"KAFKA-7128"}),
        ("3.4.1", {"KIP-903", "finding-002", "KAFKA-15552"}, {"KIP-320"}),
        ("3.5.2", {"finding-002"}, {"KIP-903", "KAFKA-15552"}),
        ("0.11.0.3", {"KAFKA-6361"}, {"finding-005"}),
        ("1.0.2", {"finding-005"}, {"finding-002"}),
        ("3.9.2", {"finding-005"}, {"KAFKA-18991"}),
        ("4.3.1", {"finding-002", "finding-004", "finding-005"}, {"finding-006", "finding-008", "KAFKA-17754"}),
    ],
)
def test_a_release_has_its_defects(release: str, has: set[str], has_not: set[str]) -> None:
    assert has <= named(release).keys()
    assert not has_not & named(release).keys()


def test_a_defect_needs_what_it_is_about() -> None:
    assert "finding-006" in named("4.3.1", policy="compact")
    assert "finding-008" in named("4.3.1", TRANSACTIONAL)
    assert "KAFKA-20634" in named("4.3.0", consumers=(MEMBER,))
    assert "finding-011" in named("3.9.2", consumers=(MEMBER,))
    assert "finding-011" not in named("3.8.1", consumers=(MEMBER,))
    assert "KAFKA-20634" not in named("4.3.1", consumers=(MEMBER,))
    member = Client(name="c", library="librdkafka", version="2.16.0", settings={"group.id": "g"})
    assert "finding-010" in named("4.3.1", TRANSACTIONAL, (member,))
    assert "finding-010" not in named("4.3.1", consumers=(member,))
    one_by_one = Client(
        name="p", library="java", version="4.3.1", settings={"max.in.flight.requests.per.connection": "1"}
    )
    assert not {"finding-004", "finding-005"} & named("4.3.1", one_by_one).keys()


def test_where_only_the_line_is_known_the_patch_decides() -> None:
    assert named("4.3.0", consumers=(MEMBER,), patch_seen=False)["KAFKA-20634"] is False
    assert named("4.3.0", consumers=(MEMBER,))["KAFKA-20634"] is True
    assert "KAFKA-20634" not in named("4.4.0", consumers=(MEMBER,), patch_seen=False)


def test_an_unknown_release_has_the_defects_that_no_release_is_without() -> None:
    applied = named("", TRANSACTIONAL)
    assert "finding-002" in applied
    assert "KAFKA-19446" not in applied
    assert not any(sure for name, sure in applied.items() if name == "finding-002")


def test_transactions_end_safely_with_a_new_client_and_the_feature() -> None:
    assert "KAFKA-17754" not in named("4.3.1", TRANSACTIONAL, features={"transaction.version": 2})
    assert "KAFKA-17754" in named("4.3.1", TRANSACTIONAL, features={"transaction.version": 1})
    old = Client(name="p", library="librdkafka", version="2.16.0", settings={"transactional.id": "t"})
    assert "KAFKA-17754" in named("4.3.1", old, features={"transaction.version": 2})


def test_a_library_that_is_configured_in_code_has_its_own() -> None:
    asked = {"enable.idempotence": "true"}
    assert "kafkajs-1005" in named("4.3.1", Client(name="p", library="kafkajs", version="2.2.4", settings=asked))
    assert "kafkajs-1005" not in named("4.3.1", Client(name="p", library="kafkajs", version="2.2.4"))
    assert not [name for name in named("4.3.1", Client(name="p", library="franz-go", version="1.22.3")) if "js" in name]


def test_every_situation_of_a_defect_is_one_of_the_table() -> None:
    told = {cell for defect in every_defect() for cell in defect.cells}
    assert told
    assert told <= CELLS.keys()


def test_a_client_has_its_own() -> None:
    at_the_end = Client(name="c", library="librdkafka", version="2.13.1", settings={"enable.partition.eof": "true"})
    assert "librdkafka-4844" in named("4.3.1", consumers=(at_the_end,))
    newer = Client(name="c", library="librdkafka", version="2.13.2", settings={"enable.partition.eof": "true"})
    assert "librdkafka-4844" not in named("4.3.1", consumers=(newer,))
    ending = {"transactional.id": "t", "enable.idempotence": "true"}
    old = Client(name="p", library="librdkafka", version="1.5.0", settings=ending)
    assert {"librdkafka-1.5.2", "librdkafka-1.7.0"} <= named("3.9.1", old).keys()
    new = Client(name="p", library="librdkafka", version="2.16.0", settings=ending)
    assert "librdkafka-4953" in named("4.3.1", new)
    assert not {"librdkafka-1.5.2", "librdkafka-1.7.0", "librdkafka-3575"} & named("4.3.1", new).keys()


@pytest.mark.parametrize(
    ("version", "idempotent", "has"),
    [
        ("2.8.2", "false", False),
        ("3.0.0", "false", True),
        ("3.0.1", "false", False),
        ("3.1.0", "false", True),
        ("3.1.0", "true", False),
        ("3.1.2", "false", False),
    ],
)
def test_a_client_that_forgets_its_default_is_named_with_the_release(
    version: str, idempotent: str, *, has: bool
) -> None:
    producer = Client(name="p", library="java", version=version, settings={"enable.idempotence": idempotent})
    assert ("KAFKA-13598" in named("3.1.0", producer)) is has


@pytest.mark.parametrize(
    ("release", "form", "has"),
    [
        ("2.0.0", "0.10.2", False),
        ("2.0.1", "0.10.2-IV0", True),
        ("2.1.0", "0.9.0", True),
        ("2.1.0", "0.11.0", False),
        ("2.1.0", "", False),
        ("2.1.1", "0.10.2", False),
    ],
)
def test_a_follower_of_an_old_format_cuts_too_much_in_two_releases(release: str, form: str, *, has: bool) -> None:
    own = {"message.format.version": form} if form else {}
    assert ("KAFKA-7897" in named(release, own=own)) is has


@pytest.mark.parametrize(
    ("release", "mode", "unclean", "has"),
    [
        ("3.7.2", "process.roles", "true", True),
        ("3.7.2", "process.roles", "false", False),
        ("3.7.2", "zookeeper.connect", "true", False),
        ("3.9.1", "process.roles", "true", False),
    ],
)
def test_kraft_does_not_ask_for_unclean_elections_before_3_9(
    release: str, mode: str, unclean: str, *, has: bool
) -> None:
    applied = named(release, own={"unclean.leader.election.enable": unclean}, brokers={mode: "x"})
    assert ("KAFKA-12670" in applied) is has


def test_defects_of_streams_of_tiers_and_of_transactions_need_what_they_are_about() -> None:
    def client(**settings: str) -> Client:
        return Client(name="c", library="java", version="3.9.2", settings={"group.id": "g", **settings})

    streams = client(**{"group.protocol": "streams"})
    assert "KAFKA-20254" in named("4.2.0", consumers=(streams,))
    assert "KAFKA-20254" not in named("4.2.1", consumers=(streams,))
    assert "KAFKA-20254" not in named("4.2.0", consumers=(client(),))
    sharing = client(**{"share.acknowledgement.mode": "explicit"})
    assert "KAFKA-20742" in named("4.3.1", consumers=(sharing,))
    assert "KAFKA-20742" not in named("4.3.1", consumers=(client(),))
    tiered = {"remote.log.storage.system.enable": "true"}
    assert "KAFKA-19858" in named("3.9.2", brokers=tiered)
    assert "KAFKA-19858" not in named("4.3.0", brokers=tiered)
    assert "KAFKA-19858" not in named("3.9.2")
    old = Client(name="p", library="java", version="3.9.2", settings={"transactional.id": "t"})
    assert {"KAFKA-18019", "KAFKA-20416"} <= named("4.3.1", old, (client(),)).keys()
    assert "KAFKA-18019" not in named("4.3.1", TRANSACTIONAL)
    assert "KAFKA-20416" not in named("4.3.1", old)
