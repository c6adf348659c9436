"""Known defects of Kafka and its clients: which releases have each, what must be in use, what a history shows of it.

Two kinds are in ``known_defects.toml``: those of the project's own findings (docs/findings), and public ones.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

Need = Literal[
    "acks-all",
    "compaction",
    "consumers",
    "end-of-partition",
    "groups",
    "idempotence",
    "kraft",
    "new-protocol",
    "no-idempotence",
    "offsets-with-times",
    "old-message-format",
    "old-transactions",
    "one-in-flight",
    "replicated",
    "several-directories",
    "several-in-flight",
    "share-groups",
    "streams-groups",
    "tiered-storage",
    "transactions",
    "unclean-election",
]
Library = Literal["java", "librdkafka", "kafka-python", "franz-go", "kafkajs", "sarama"]


class Defect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A defect: what has it, and what must be in use.

    Attributes:
        name: its name here, or that of its public issue.
        title, harm: the defect in a few words, and its effect.
        of: brokers ("kafka"), or a client library.
        affected: the first release that has it, and the first that has not; "" for none yet.
        by: what decides which releases have it: their code, or the protocol that brokers speak, and its messages.
        read: where this range was read; "" where the page of ``link`` says it.
        needs: what must be in use.
        anomalies: what a history shows of it; only of defects that are a finding of the project.
        cells: situations of `ackproof clients` in which it shows.
        marks: by such an anomaly, what a finding of this defect shows beside it (:attr:`checkers.Finding.mark`); of an
            anomaly that is not here nothing tells whose it is.
        link: the finding's page, or a public one.
        change, price: what an operator can do, and what that costs.
        measured: the name under which figures of that price are kept (harness/assess/prices.py); "" without any.
    """

    name: str
    title: str = ""
    harm: str
    of: Literal["kafka"] | Library
    affected: list[tuple[str, str]]
    by: Literal["release", "protocol"] = "release"
    read: str = ""
    needs: list[Need]
    anomalies: frozenset[str] = frozenset()
    cells: tuple[str, ...] = ()
    marks: Mapping[str, str] = {}
    link: str = ""
    change: str
    price: str
    measured: str = ""

    @property
    def releases(self) -> str:
        """The releases that have it, in words: ``kafka 0.11.0.0 to before 4.2.0``."""
        ranges = (f"{first} to before {end}" if end else f"since {first}" for first, end in self.affected)
        return f"{self.of} {', '.join(ranges)}"


class ProductFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding of the project: its number, its page in docs/findings, its title, and the defects that it found.

    ``reported`` is the address of the report to those who can mend it; "" for not yet.
    """

    number: str
    page: str
    title: str
    reported: str = ""
    defect: tuple[Defect, ...]


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    looked_at: dict[str, tuple[str, str]]
    finding: list[ProductFinding]
    defect: list[Defect]


@cache
def product_findings() -> Mapping[str, ProductFinding]:
    """The project's own findings by number; each of their defects has its title and its link."""
    return {finding.number: _whole(finding) for finding in _data().finding}


@cache
def every_defect() -> Sequence[Defect]:
    """All defects: first those of the findings, by number."""
    return (*(defect for finding in product_findings().values() for defect in finding.defect), *_data().defect)


def looked_at() -> Mapping[str, tuple[str, str]]:
    """The oldest and the newest release for which defects were looked for, of "kafka" and of client libraries."""
    return _data().looked_at


@cache
def _data() -> _Data:
    text = (resources.files("harness.ground") / "known_defects.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Data)


def _whole(finding: ProductFinding) -> ProductFinding:
    link = f"docs/findings/{finding.page}"
    defects = tuple(
        msgspec.structs.replace(defect, title=defect.title or finding.title, link=link) for defect in finding.defect
    )
    return msgspec.structs.replace(finding, defect=defects)
