"""Known defects by release, by client and by what is in use; and the file that has them."""

from __future__ import annotations

import pytest

from harness.assess import Client, Cluster, Release, Topic
from harness.assess.defects import defects_of, needs_met
from harness.assess.grouping import groups_of
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
) -> dict[str, bool]:
    """The names of the defects that apply, and whether that is sure."""
    topic = Topic(name="t", partitions=1, replicas=3, settings={"cleanup.policy": policy})
    seen = Release(parse_version(release), patch_seen) if release else None
    cluster = Cluster(source="s", topics=(topic,), release=seen, features=features or {})
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
