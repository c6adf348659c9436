"""Plays a finding, and holds what was observed against what its page says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import confluent_kafka
import msgspec
from kafka.errors import KafkaError

from harness.ground.errors import HostError, PlanError
from harness.ground.machine.versions import versions
from harness.ground.progress import Progress
from harness.lab.findings.playable import InUse, PlayableFinding, Played, PlayVerdict, Way
from harness.lab.findings.stage import FindingStage, NotObservedError
from harness.plan import ClientName
from harness.runs.run import kept_until_undone
from harness.worlds.kafka.administration import UnansweredError
from harness.worlds.kafka.installation import find
from harness.worlds.kafka.releases import DEFAULT_VERSION, parse_version
from workloads import reason_of, unknown_name


class AsDocumented(StrEnum):
    """Some plays of a finding held against its page."""

    YES = "as its page says"
    NO = "otherwise than its page says"
    UNKNOWN = "not known"


class PlayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The plays that are asked for: a finding, a way of it, and the releases in use."""

    finding: PlayableFinding
    way: str
    version: str
    client: ClientName
    client_version: str

    @property
    def chosen(self) -> Way:
        """The way to play it."""
        return self.finding.ways[self.way]

    @property
    def releases(self) -> InUse:
        """The releases in use; that of librdkafka is its own, and not that of its Python binding."""
        match self.client:
            case "confluent-kafka":
                library = confluent_kafka.libversion()[0]
            case "kafka-python":
                library = versions()["kafka-python"]
            case _:
                library = self.client_version or self.version
        return InUse(parse_version(self.version), self.client, parse_version(library))

    @property
    def in_words(self) -> str:
        """The releases in use, in words."""
        names = {"confluent-kafka": "librdkafka", "kafka-python": "kafka-python", "java": "Kafka's Java client"}
        brokers = f"Kafka {self.version}" if self.chosen.kafka else "the reference broker"
        return f"{brokers} with {names[self.client]} {self.releases.library}"

    @property
    def expected(self) -> bool | None:
        """The outcome that the page says: True where the finding shows, None where it says nothing of it."""
        return self.chosen.expects(self.finding, self.releases)


def asked_for(finding: PlayableFinding, way: str = "", version: str = "", client: str = "") -> PlayRequest:
    """Choose plays: by default the first way, the default release, and the usual client ("java:3.9.2" has a release).

    Raises:
        PlanError: there is no such way, release or client.
        HostError: a release is not installed, or this machine lacks what the way needs.
    """
    way = way or finding.usual
    if way not in finding.ways:
        raise PlanError(unknown_name(f"way of finding {finding.number}", way, finding.ways))
    chosen = finding.ways[way]
    name, _, release = client.partition(":")
    usual, *_ = clients = finding.clients_of(way)
    libraries: dict[str, ClientName] = {each: each for each in clients}
    if name and name not in libraries:
        raise PlanError(unknown_name(f"client of finding {finding.number}, way {way}", name, libraries))
    library = libraries[name] if name else usual
    if release and library != "java":
        raise PlanError(f"{client}: only the Java client is taken in other releases; write --client {name}")
    version = str(parse_version(version or DEFAULT_VERSION))
    if chosen.kafka or library == "java":
        find(version).require_startable()
    if release:
        find(release)
    missing = [program for program in finding.programs if shutil.which(program) is None]
    if missing or (finding.programs and os.geteuid() != 0):
        lacks = f"the programs {', '.join(missing)}" if missing else "root"
        raise HostError(f"finding {finding.number} needs {lacks}: see `ackproof doctor`")
    return PlayRequest(finding=finding, way=way, version=version, client=library, client_version=release)


def plays(asked: PlayRequest, runs: int, progress: Progress) -> Iterator[Played]:
    """Play it so often, each time on a new cluster; what cannot be observed is an answer, not an exception.

    Raises:
        HostError: something is not undone.
        HarnessError: a cluster could not be started.
        KeyboardInterrupt: the user wants no more; what was started is ended.
    """
    for number in range(1, runs + 1):
        count = f", {number} of {runs}" if runs > 1 else ""
        with (
            progress.phase(f"finding {asked.finding.number}{count}", None),
            kept_until_undone("ackproof-finding-") as directory,
        ):
            played = _played(asked, directory, progress)
        yield played


def _played(asked: PlayRequest, directory: Path, progress: Progress) -> Played:
    stage = FindingStage(
        version=asked.version,
        client=asked.client,
        client_version=asked.client_version,
        directory=directory,
        progress=progress,
    )
    try:
        return asked.chosen.play(stage)
    except (NotObservedError, UnansweredError, OSError, KafkaError, confluent_kafka.KafkaException) as error:
        return Played(PlayVerdict.NOT_OBSERVED, why=reason_of(error))


def compared(expected: bool | None, played: Sequence[Played]) -> AsDocumented:
    """Hold some plays against the page.

    A finding that it says to show has to show in one of them; what it says not to show, in none.
    """
    verdicts = {each.verdict for each in played} - {PlayVerdict.NOT_OBSERVED}
    if expected is None or not verdicts:
        return AsDocumented.UNKNOWN
    return AsDocumented.YES if expected is (PlayVerdict.SHOWN in verdicts) else AsDocumented.NO
