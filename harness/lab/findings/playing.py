"""Plays a finding, and holds what was observed against what its page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import confluent_kafka
import msgspec
from kafka.errors import KafkaError

from harness.ground.errors import HarnessError, HostError, PlanError
from harness.ground.machine.versions import versions
from harness.ground.progress import Progress
from harness.lab.findings.playable import InUse, PlayableFinding, Played, PlayVerdict, Way
from harness.lab.findings.stage import FindingStage, NotObservedError
from harness.plan import ClientName
from harness.runs.run import kept_until_undone
from harness.worlds.kafka.administration import UnansweredError
from harness.worlds.kafka.installation import find
from harness.worlds.kafka.patches import Patch, read_patch
from harness.worlds.kafka.releases import DEFAULT_VERSION, numbered, parse_version
from workloads import reason_of, unknown_name


class AsDocumented(StrEnum):
    """Some plays of a finding held against its page."""

    YES = "as its page says"
    NO = "otherwise than its page says"
    UNKNOWN = "not known"


class PlayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The plays that are asked for: a finding, a way of it, the releases in use, and a patch that comes before them."""

    finding: PlayableFinding
    way: str
    version: str
    client: ClientName
    client_version: str
    patch: Patch | None = None

    @property
    def chosen(self) -> Way:
        """The way to play it."""
        return self.finding.ways[self.way]

    @property
    def releases(self) -> InUse:
        """The releases in use; that of librdkafka is its own, and not that of its Python binding."""
        match self.client:
            case "confluent-kafka" if self.patch and self.patch.has_library:
                library = self.patch.library_version()
            case "confluent-kafka":
                library = confluent_kafka.libversion()[0]
            case "kafka-python":
                library = versions()["kafka-python"]
            case _:
                library = self.client_version or self.version
        return InUse(parse_version(self.version), self.client, numbered(library))

    @property
    def in_words(self) -> str:
        """The releases in use, in words."""
        names = {"confluent-kafka": "librdkafka", "kafka-python": "kafka-python", "java": "Kafka's Java client"}
        brokers = f"Kafka {self.version}" if self.chosen.kafka else "the reference broker"
        patch = f", and {self.patch.directory} before it" if self.patch else ""
        return f"{brokers} with {names[self.client]} {self.releases.library}{patch}"

    @property
    def expected(self) -> bool | None:
        """The outcome that the page says: True where the finding shows, None where it says nothing of it.

        It says nothing of patches.
        """
        return self.chosen.expects(self.finding, self.releases)


def asked_for(
    finding: PlayableFinding, way: str = "", version: str = "", client: str = "", patch: Path | None = None
) -> PlayRequest:
    """Choose plays: by default the first way, the default release, and the usual client ("java:3.9.2" has a release).

    What is in the directory ``patch`` comes before the release's own classes, or the installed client library.

    Raises:
        PlanError: there is no such way, release or client, or the patch is not for that release.
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
    return PlayRequest(
        finding=finding,
        way=way,
        version=version,
        client=library,
        client_version=release,
        patch=read_patch(patch, find(version)) if patch else None,
    )


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
            if asked.patch and asked.patch.apart:
                played = _played_apart(asked, asked.patch, directory, progress)
            else:
                played = played_here(asked, directory, progress)
        yield played


def _played_apart(asked: PlayRequest, patch: Patch, directory: Path, progress: Progress) -> Played:
    """Play it once in a process of its own, in which the client library of the patch is loaded first.

    Raises:
        HarnessError: that process failed.
    """
    progress.advance("playing in a process of its own")
    words = (asked.finding.number, asked.way, asked.version, asked.client, asked.client_version)
    program = "from harness.lab.findings.apart import main; main()"
    command = (sys.executable, "-c", program, *words, str(patch.directory), str(directory))
    with subprocess.Popen(  # noqa: S603 - this very interpreter
        command, env=patch.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        told, complaints = process.communicate()
    if process.returncode:
        last = complaints.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise HarnessError(f"the process that plays with {patch.directory} failed: {last[0]}")
    return msgspec.json.decode(told, type=Played)


def played_here(asked: PlayRequest, directory: Path, progress: Progress) -> Played:
    """Play it once in this process, whose files are in ``directory``."""
    stage = FindingStage(
        version=asked.version,
        client=asked.client,
        client_version=asked.client_version,
        patch=str(asked.patch.directory) if asked.patch and asked.patch.has_classes else "",
        directory=directory,
        progress=progress,
    )
    try:
        return asked.chosen.play(stage)
    except (NotObservedError, UnansweredError, OSError, KafkaError, confluent_kafka.KafkaException) as error:
        return Played(PlayVerdict.NOT_OBSERVED, why=reason_of(error))


def held_against_page(asked: PlayRequest, played: Sequence[Played]) -> AsDocumented:
    """Hold some plays against the page; with a patch a finding that it says to show should not show any more."""
    return compared(False if asked.patch and asked.expected else asked.expected, played)


def compared(expected: bool | None, played: Sequence[Played]) -> AsDocumented:
    """Hold some plays against the page.

    A finding that it says to show has to show in one of them; what it says not to show, in none.
    """
    verdicts = {each.verdict for each in played} - {PlayVerdict.NOT_OBSERVED}
    if expected is None or not verdicts:
        return AsDocumented.UNKNOWN
    return AsDocumented.YES if expected is (PlayVerdict.SHOWN in verdicts) else AsDocumented.NO
