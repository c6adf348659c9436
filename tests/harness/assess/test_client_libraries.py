"""The word of --client: libraries that are known, those that work with one of them, and those that are not known."""

from __future__ import annotations

import pytest

from harness.assess.client_libraries import library_of
from harness.ground.errors import PlanError


@pytest.mark.parametrize(
    ("word", "library"),
    [
        ("", (None, "")),
        ("java", ("java", "")),
        ("java:v3.9.1", ("java", "3.9.1")),
        ("Java:0.11.0.3", ("java", "0.11.0.3")),
        ("librdkafka:2.16", ("librdkafka", "2.16")),
        ("confluent-kafka:2.13.2", ("librdkafka", "2.13.2")),
        ("node-rdkafka", ("librdkafka", "")),
        ("confluent-kafka-go", ("librdkafka", "")),
        ("kafka-python:3.0.12", ("kafka-python", "3.0.12")),
        ("franz-go 1.22.3", ("franz-go", "1.22.3")),
        ("twmb/franz-go:v1.22.3", ("franz-go", "1.22.3")),
        ("kafkajs", ("kafkajs", "")),
        ("IBM/sarama 1.43.0", ("sarama", "1.43.0")),
    ],
)
def test_a_library_and_its_release_are_known(word: str, library: tuple[str | None, str]) -> None:
    assert library_of(word) == library


@pytest.mark.parametrize(
    "word",
    [
        "segmentio/kafka-go",
        "kafka-go",
        "aiokafka:0.12",
        "ruby-kafka",
        "brod",
        "x",
    ],
)
def test_another_library_is_said_to_be_unknown_and_no_other_is_offered(word: str) -> None:
    with pytest.raises(PlanError, match="defaults and defects are not known here") as caught:
        library_of(word)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "word", ["node-rdkafka:3.1.0", "rdkafka:0.36.2", "confluent-kafka-dotnet:2.3.0", "karafka:2.4"]
)
def test_a_wrapper_with_its_own_release_is_told_how_to_name_that_of_librdkafka(word: str) -> None:
    with pytest.raises(PlanError, match=r"works with librdkafka.*write librdkafka:VERSION"):
        library_of(word)


@pytest.mark.parametrize("word", ["spring-kafka:3.1.0", "quarkus", "flink:1.20"])
def test_what_works_with_kafkas_own_client_is_told_so(word: str) -> None:
    with pytest.raises(PlanError, match=r"write java:VERSION"):
        library_of(word)


@pytest.mark.parametrize(
    ("word", "near"), [("jafa", "java"), ("librdkafa", "librdkafka"), ("kafka-pyton:3.0.0", "kafka-python")]
)
def test_a_slip_of_a_known_name_gets_the_nearest(word: str, near: str) -> None:
    with pytest.raises(PlanError, match=f"did you mean {near}"):
        library_of(word)


@pytest.mark.parametrize("word", ["java:new", "kafka-python:3", "librdkafka:2.x", ":3.9.1"])
def test_what_is_no_version_is_refused(word: str) -> None:
    with pytest.raises(PlanError):
        library_of(word)
