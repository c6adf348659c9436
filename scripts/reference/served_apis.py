"""The page of Kafka's APIs that the reference broker serves, from its table of them."""

from __future__ import annotations

from typing import Final

from harness.broker.server.codec import ADVERTISED, APIS, NOT_SERVED
from scripts.reference.markdown import page, table, wrapped

INTRODUCTION: Final = """
The reference broker's server answers these requests of Kafka's protocol, in these versions. It closes the connection of
any other one. Produce is advertised from version 0 on, and taken from version 3 on (KAFKA-18659).

Tests (`tests/harness/broker/server/test_kafka_tools.py`) run tools of Kafka against it. They are `kafka-topics`,
`kafka-get-offsets`, both console clients, `kafka-consumer-groups` (list, describe, reset offsets, delete), all commands
of `kafka-transactions`, VerifiableProducer, VerifiableConsumer and TransactionalMessageCopier.
"""

REFUSED: Final = """
Of what applications and their admin clients send, topics that they make, `DescribeConfigs`, and `OffsetFetch` are
served. These are not: the versions that the broker tells do not have them, and its log names one that comes all the
same.
"""


def served_apis() -> str:
    """Every API with its number and versions, in the order of numbers."""
    rows = [
        (f"`{api.request.__name__.removesuffix('Request')}`", str(key), "{} to {}".format(*ADVERTISED[key]))
        for key, api in sorted(APIS.items())
    ]
    return page(
        "Kafka's APIs on the reference broker",
        "`harness/broker/server/codec/__init__.py`",
        *map(wrapped, INTRODUCTION.strip().split("\n\n")),
        table(["API", "number", "versions"], rows),
        *map(wrapped, REFUSED.strip().split("\n\n")),
        table(["API", "number", "sent by"], [(f"`{name}`", str(key), who) for key, (name, who) in NOT_SERVED.items()]),
    )
