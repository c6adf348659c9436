"""The client libraries that ``--client`` names: those that are known here, what works with one of them, and others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final, get_args

from harness.ground.errors import PlanError
from harness.ground.known_defects import Library
from workloads import shown

_LIBRARIES: Final[tuple[Library, ...]] = get_args(Library)
#: Libraries that work with librdkafka, and whose own releases have other numbers; how each tells that of librdkafka.
_WITH_LIBRDKAFKA: Final[Mapping[str, str]] = {
    "confluent-kafka-go": "kafka.LibraryVersion()",
    "confluent-kafka-dotnet": "Library.VersionString",
    "confluent-kafka-javascript": "librdkafkaVersion",
    "node-rdkafka": "librdkafkaVersion",
    "rdkafka": "rd_kafka_version_str()",
    "rust-rdkafka": "rdkafka::util::get_rdkafka_version()",
    "php-rdkafka": "rd_kafka_version_str()",
    "rdkafka-ruby": "Rdkafka::LIBRDKAFKA_VERSION",
    "karafka": "Rdkafka::LIBRDKAFKA_VERSION",
    "waterdrop": "Rdkafka::LIBRDKAFKA_VERSION",
    "kcat": "kcat -V",
    "kafkacat": "kafkacat -V",
}
#: The wrapper whose releases have the numbers of the librdkafka in them.
_SAME_NUMBERS: Final = "confluent-kafka"
#: Frameworks and libraries that work with Kafka's own client.
_WITH_JAVA: Final = (
    "kafka-clients", "kafka-streams", "kafka-connect", "spring-kafka", "spring", "spring-boot", "quarkus", "smallrye",
    "micronaut", "flink", "spark", "alpakka", "akka", "pekko", "camel", "reactor-kafka", "vertx", "scala", "kotlin",
)  # fmt: skip
#: Libraries of their own, with defaults of their own.
_OTHERS: Final = frozenset(
    {
        "aiokafka", "brod", "kafka-go", "kafka-node", "kafka-rust", "pykafka", "rskafka", "ruby-kafka", "segmentio",
        "segmentio/kafka-go",
    }
)  # fmt: skip
_KNOWN: Final = f"known here are {', '.join(_LIBRARIES)}"
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+){1,3})")
_ALIKE: Final = 0.75


def library_of(word: str) -> tuple[Library | None, str]:
    """The library and its release that words such as "java:3.9.1" or "franz-go 1.22.3" name; None and "" for none.

    Raises:
        PlanError: it is not known here; the text says why, and what to write instead, if anything.
    """
    name, separator, version = ":".join(word.split()).partition(":")
    if not name and not separator:
        return None, ""
    lowered = _ALSO.get(name.lower(), name.lower())
    library = next((each for each in _LIBRARIES if lowered == each or (lowered, each) == _SAME), None)
    if library is None and lowered in _WITH_LIBRDKAFKA and not version:
        return "librdkafka", ""
    if library is None:
        raise PlanError(f"--client {word}: {_stranger(name, lowered)}")
    if version and not (match := _VERSION.fullmatch(version)):
        raise PlanError(f"--client {word}: {shown(version)} is not a version; write, for example, {lowered}:3.9.1")
    return library, match[1] if version and match else ""


_SAME: Final = (_SAME_NUMBERS, "librdkafka")
#: Libraries by the names of their repositories.
_ALSO: Final = {
    "twmb/franz-go": "franz-go",
    "ibm/sarama": "sarama",
    "shopify/sarama": "sarama",
    "tulios/kafkajs": "kafkajs",
}


def _stranger(name: str, lowered: str) -> str:
    if how := _WITH_LIBRDKAFKA.get(lowered):
        return (
            f"{name} works with librdkafka, whose releases have other numbers; write librdkafka:VERSION with the "
            f"release that it works with ({how} tells it), or {lowered} without a version"
        )
    if lowered in _WITH_JAVA:
        return (
            f"{name} works with Kafka's own client, whose releases have other numbers; write java:VERSION with the "
            "release of kafka-clients in it"
        )
    near = difflib.get_close_matches(lowered, [*_LIBRARIES, _SAME_NUMBERS], n=1, cutoff=_ALIKE)
    if near and lowered not in _OTHERS:
        return f"no client library {shown(name)} is known; did you mean {near[0]}?"
    return (
        f"{shown(name)} is a library whose defaults and defects are not known here ({_KNOWN}), and another's would not "
        "be right for it"
    )
