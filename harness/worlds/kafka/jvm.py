"""Kafka's Java: started with small heaps, the serial collector and class data from an archive (JEP 350); its logs.

On two cores a start is mostly loading classes; an archive of them, made once per release and Java, takes a third off:
measured with 4.3.1, a controller and three brokers were ready in 3.7 s instead of 5.6 s.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from harness.ground.machine.java import java_program
from harness.ground.observations import JVM_PAUSE_MIN_MS, JvmPaused, Observation
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.log_patterns import VERSION_LOGGERS
from nemesis.cluster import CONTROLLER

MAIN: Final = "kafka.Kafka"
#: Measured with 4.3.1 and a few partitions: every node takes 120 to 150 MB of memory in all.
BROKER_HEAP_MB: Final = 256
CONTROLLER_HEAP_MB: Final = 128
TOOL_HEAP_MB: Final = 128
#: Room for the buffers of several producers (buffer.memory is 32 MB each), and for records that wait for one.
CLIENT_HEAP_MB: Final = 512
_COMMON: Final = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    # An archive that does not fit this Java is passed over in silence; the start is slower, and that is all.
    "-Xlog:cds=off",
    "-Xlog:cds+dynamic=off",
    "-Xss512k",
    "-XX:MaxMetaspaceSize=128m",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Duser.timezone=UTC",
)

#: The path that a file of this machine has on the machine of a node.
NodePath = Callable[[Path], str]
#: The most that it takes to start a node and end it again; the harness gives up before.
_ARCHIVE_LIMIT_S: Final = 180.0
#: Starts of one node within a run whose logs of collections are kept.
_STARTS_MAX: Final = 50
#: Time in UTC (the JVM is configured so), level, class, words.
PATTERN: Final = "%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c %m%n"
#: Classes that log leaders, in-sync replicas, truncation and refused requests, from the level named on; all others log
#: warnings.
LEVELS: Final[Mapping[str, str]] = {
    "state.change.logger": "INFO",
    "kafka.server": "INFO",
    "kafka.server.KafkaApis": "DEBUG",
    "kafka.cluster.Partition": "INFO",
    "kafka.log": "INFO",
    "kafka.raft": "INFO",
    "org.apache.kafka.storage.internals.log": "INFO",
    "org.apache.kafka.controller": "INFO",
    "org.apache.kafka.controller.ReplicationControlManager": "DEBUG",
    **dict.fromkeys(VERSION_LOGGERS, "INFO"),
}


class LogFiles(NamedTuple):
    """The files of one node: the logging ``configuration`` it reads, and where it logs its ``collections``."""

    configuration: Path
    collections: Path

    def logging(self, installation: Installation, node_path: NodePath = str) -> tuple[str, ...]:
        """The words that make a JVM log to its standard output as configured, at its ``node_path``."""
        if installation.version >= (4, 0, 0):
            return (f"-Dlog4j2.configurationFile={node_path(self.configuration)}", "-Dlog4j2.disableJmx=true")
        # ZooKeeper before 3.6 would register its loggers with JMX, with classes of log4j that reload4j does not have.
        return (f"-Dlog4j.configuration=file:{node_path(self.configuration)}", "-Dzookeeper.jmx.log4j.disable=true")

    def write(self, installation: Installation, levels: Mapping[str, str] = LEVELS) -> None:
        """Write the configuration in the form that this release's binding reads."""
        text = _log4j2(levels) if installation.version >= (4, 0, 0) else _log4j1(levels)
        self.configuration.write_text(text, encoding="utf-8")


def _log4j2(levels: Mapping[str, str]) -> str:
    lines = [
        "status=error",
        "appender.out.type=Console",
        "appender.out.name=out",
        "appender.out.layout.type=PatternLayout",
        f"appender.out.layout.pattern={PATTERN}",
        "rootLogger.level=WARN",
        "rootLogger.appenderRef.out.ref=out",
    ]
    for number, (name, level) in enumerate(levels.items()):
        lines += [f"logger.l{number}.name={name}", f"logger.l{number}.level={level}"]
    return "\n".join([*lines, ""])


def _log4j1(levels: Mapping[str, str]) -> str:
    lines = [
        "log4j.rootLogger=WARN, out",
        "log4j.appender.out=org.apache.log4j.ConsoleAppender",
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout",
        f"log4j.appender.out.layout.ConversionPattern={PATTERN}",
    ]
    return "\n".join([*lines, *(f"log4j.logger.{name}={level}" for name, level in levels.items()), ""])


def node_command(
    installation: Installation,
    node: int,
    properties: Path,
    files: LogFiles,
    node_path: NodePath = str,
    *,
    main: str = MAIN,
    max_lifetime_s: float = 0,
) -> tuple[str, ...]:
    """The words that start a node with the class ``main``; it ends by itself after ``max_lifetime_s``, 0 for never.

    Raises:
        JavaError: this machine has no Java.
    """
    heap_mb = CONTROLLER_HEAP_MB if node >= CONTROLLER else BROKER_HEAP_MB
    # One file for each start of the node: without a number of files, Java empties the old one.
    kept = f"filecount={_STARTS_MAX}"
    # In quotes, or a colon in the path would end it.
    collections = f'-Xlog:gc*,safepoint:file="{node_path(files.collections)}":utctime,level,tags:{kept}'
    options = (*_lifetime(max_lifetime_s), *_shared(installation, node_path), collections)
    options += files.logging(installation, node_path)
    return _java(installation, heap_mb, options, (main, node_path(properties)), node_path)


def tool_command(installation: Installation, words: Sequence[str]) -> tuple[str, ...]:
    """The words that start one of Kafka's tools: its main class, then its arguments."""
    return _java(installation, TOOL_HEAP_MB, _shared(installation), words)


def client_command(
    installation: Installation, more_jars: Sequence[Path], files: LogFiles, words: Sequence[str]
) -> tuple[str, ...]:
    """The words that start a client of this release: its main class, then its arguments.

    ``more_jars`` come last on the class path, so that the archive of class data still fits.
    """
    options = (*_shared(installation), *files.logging(installation))
    return _java(installation, CLIENT_HEAP_MB, options, words, more_jars=more_jars)


def archive_command(installation: Installation, properties: Path, files: LogFiles, archive: Path) -> tuple[str, ...]:
    """The words that start a node which writes ``archive`` when it ends; it ends by itself after three minutes.

    No journal knows it, so nothing else would end it after a harness that was killed.
    """
    options = (*_lifetime(_ARCHIVE_LIMIT_S), f"-XX:ArchiveClassesAtExit={archive}", *files.logging(installation))
    return _java(installation._replace(patch=None), BROKER_HEAP_MB, options, (MAIN, str(properties)))


def archive_path(installation: Installation) -> Path:
    """The path of the archive for this Java, made or not."""
    return installation.made / f"classes-{_java_name(java_program())}.jsa"


def _java(
    installation: Installation,
    heap_mb: int,
    options: Sequence[str],
    words: Sequence[str],
    node_path: NodePath = str,
    *,
    more_jars: Sequence[Path] = (),
) -> tuple[str, ...]:
    """A Java with a release's jars, each by name: an archive of class data fits only a list that begins the same."""
    jars = ":".join(node_path(path) for path in [*installation.class_path, *more_jars])
    heap = (f"-Xms{heap_mb // 4}m", f"-Xmx{heap_mb}m")
    return (node_path(Path(java_program())), *heap, *_COMMON, *options, "-cp", jars, *words)


def _shared(installation: Installation, node_path: NodePath = str) -> tuple[str, ...]:
    """The option to use the archive, which fits only jars at the very same paths, and nothing before them."""
    archive = archive_path(installation)
    here = installation.patch is None and archive.is_file() and node_path(archive) == str(archive)
    return (f"-XX:SharedArchiveFile={archive}",) if here else ()


@cache
def _java_name(java: str) -> str:
    """Vendor and version as a file's name: from the file ``release`` of the Java, or else from the Java itself."""
    program = Path(java).resolve()
    release = program.parent.parent / "release"
    text = release.read_text(encoding="utf-8") if release.is_file() else str(program)
    return hashlib.sha256(f"{program}\n{text}".encode()).hexdigest()[:12]


def _lifetime(seconds: float) -> tuple[str, ...]:
    """The option of HotSpot's own timer, in whole minutes: the process ends by itself and keeps its id.

    HotSpot has the timer for tests only, and may drop it; a Java without it runs without a limit.
    """
    if not seconds:
        return ()
    return ("-XX:+IgnoreUnrecognizedVMOptions", f"-XX:SelfDestructTimer={math.ceil(seconds / 60)}")


#: Both forms that HotSpot has written since Java 17; reaching the safepoint is part of the pause.
_SAFEPOINT: Final = re.compile(
    rb'^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4})\].*\] Safepoint "(\w+)".* Total: +(\d+) ns'
)
_NODE: Final = re.compile(r"gc-(\d+)\.log(\.\d+)?")


def pauses_in(logs: Path, wall_begin_us: int) -> list[Observation]:
    """The long pauses of all nodes in the directory ``logs``, in order of time; time 0 is ``wall_begin_us``.

    Garbage collection and other safepoints: a pause of a few hundred milliseconds looks to the others like a slow
    network, and explains time-outs that no fault of the schedule does.

    ``time_us`` is the begin of a pause. A node that was started again has a file for each time.
    """
    pauses = [
        Observation(end_us - pause_us - wall_begin_us, node, JvmPaused(pause_ms=pause_us // 1000, cause=cause))
        for path in sorted(logs.glob("gc-*"))
        if (named := _NODE.fullmatch(path.name)) is not None
        for node in [int(named[1])]
        for end_us, pause_us, cause in _safepoints(path)
        if pause_us >= JVM_PAUSE_MIN_MS * 1000 and end_us >= wall_begin_us
    ]
    return sorted(pauses, key=lambda seen: seen.time_us)


def _safepoints(path: Path) -> Iterator[tuple[int, int, str]]:
    """(end in microseconds since the epoch, microseconds of pause, cause); the log line is written at the end."""
    with path.open("rb") as file:
        for line in file:
            if (safepoint := _SAFEPOINT.match(line)) is not None:
                end = datetime.strptime(safepoint[1].decode(), "%Y-%m-%dT%H:%M:%S.%f%z")
                yield round(end.timestamp() * 1_000) * 1_000, int(safepoint[3]) // 1000, safepoint[2].decode()
