"""A finding that can be played: the ways to play it, and the outcome that its page says of each.

A finding is a module of this room, a line in :mod:`harness.lab.findings.register`, a page in ``docs/findings`` and an
entry of ``harness/ground/known_defects.toml``; its number holds them together. The entry says which releases are
affected, and the module which ones were played as controls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from harness.ground.known_defects import Defect, ProductFinding, every_defect, product_findings
from harness.lab.findings.stage import FindingStage
from harness.plan import ClientName
from harness.worlds.kafka.releases import Version, numbered, parse_version

#: The programs with which links are cut in network namespaces, as root.
NETWORK: Final = ("ip", "nft", "nsenter")
#: The client of plans for each library.
_CLIENTS: Final[Mapping[str, ClientName]] = {
    "java": "java",
    "librdkafka": "confluent-kafka",
    "kafka-python": "kafka-python",
}


class PlayVerdict(StrEnum):
    """The outcome of a play."""

    SHOWN = "shown"
    NOT_SHOWN = "not shown"
    NOT_OBSERVED = "could not be observed"


class Played(msgspec.Struct, frozen=True):
    """One play: its verdict, what was observed, a sentence for each step, and why nothing could be observed."""

    verdict: PlayVerdict
    seen: Sequence[str] = ()
    why: str = ""

    @classmethod
    def of(cls, seen: Sequence[str], *, shown: bool) -> Played:
        """A play in which these steps were observed, and the finding was ``shown`` or not."""
        return cls(PlayVerdict.SHOWN if shown else PlayVerdict.NOT_SHOWN, tuple(seen))


class InUse(NamedTuple):
    """The releases in a play: of Kafka, and of the client library under its name in plans."""

    kafka: Version
    client: ClientName
    library: Version


#: The outcome that a page says: True if the finding shows, False if not, None where it says nothing of these releases.
Expectation = Callable[["PlayableFinding", InUse], bool | None]


def expects_defect(*names: str) -> Expectation:
    """The finding shows where releases have one of these defects, by default one of the finding's own."""

    def expected(finding: PlayableFinding, releases: InUse) -> bool | None:
        answers = [
            _has(defect, finding, releases) for defect in finding.entry.defect if not names or defect.name in names
        ]
        return True if True in answers else None if None in answers else False

    return expected


def expects_nothing(_finding: PlayableFinding, _releases: InUse) -> bool:
    """The finding does not show: a control."""
    return False


def expects_always(_finding: PlayableFinding, _releases: InUse) -> bool:
    """The finding shows whatever releases there are: on the reference broker, which has the rule of Kafka."""
    return True


def _has(defect: Defect, finding: PlayableFinding, releases: InUse) -> bool | None:
    if defect.of == "kafka":
        version, controls = releases.kafka, [parse_version(text) for text in finding.controls]
    elif _CLIENTS[defect.of] != releases.client:
        return False
    else:
        version, controls = releases.library, []
    begun = [(numbered(first), since) for first, since in defect.affected if numbered(first) <= version]
    if any(not since or version < numbered(since) for _, since in begun):
        return True
    return False if begun or version in controls else None


class Way(NamedTuple):
    """One way to play a finding.

    Attributes:
        meaning: what happens, or what differs from the first way.
        play: plays it once.
        expects: the outcome that the page says; by default the finding shows where releases have its defects.
        clients: the libraries that it is played with, the usual one first; empty: those of the finding.
        kafka: it is played on Apache Kafka; else on the reference broker.
    """

    meaning: str
    play: Callable[[FindingStage], Played]
    expects: Expectation = expects_defect()
    clients: Sequence[ClientName] = ()
    kafka: bool = True


class PlayableFinding(NamedTuple):
    """A finding that can be played.

    Attributes:
        number: that of its page and of its entry; of a known defect of others its name.
        ways: by name; the first is the finding itself.
        clients: the libraries that it is played with, the usual one first.
        minutes: how long a play takes at most on a quiet machine.
        programs: those that it needs, as root.
        controls: releases of Kafka without it that its page names, in addition to those that the entry says are mended.
    """

    number: str
    ways: Mapping[str, Way]
    clients: Sequence[ClientName] = ("confluent-kafka",)
    minutes: int = 1
    programs: Sequence[str] = ()
    controls: Sequence[str] = ()

    @property
    def entry(self) -> ProductFinding:
        """Its title, its page and its defects; of a known defect of others that one, without a page."""
        if self.number in (own := product_findings()):
            return own[self.number]
        (defect,) = (each for each in every_defect() if each.name == self.number)
        return ProductFinding(number=defect.name, page="", title=defect.title, defect=(defect,))

    @property
    def link(self) -> str:
        """Its page here, or the public one of a known defect."""
        return self.entry.defect[0].link

    @property
    def usual(self) -> str:
        """The name of the way that is the finding itself."""
        return next(iter(self.ways))

    def clients_of(self, way: str) -> Sequence[ClientName]:
        """The libraries that a way is played with, the usual one first."""
        return self.ways[way].clients or self.clients
