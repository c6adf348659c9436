"""What a node writes of itself: where, in which form, and which classes log how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from harness.worlds.kafka.installation import Installation

#: Time in UTC (the JVM is configured so), level, class, words.
PATTERN: Final = "%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c %m%n"
#: Classes that log leaders, in-sync replicas and truncation, from the level named on; all others log warnings.
LEVELS: Final[Mapping[str, str]] = {
    "state.change.logger": "INFO",
    "kafka.server": "INFO",
    "kafka.cluster.Partition": "INFO",
    "kafka.log": "INFO",
    "kafka.raft": "INFO",
    "org.apache.kafka.storage.internals.log": "INFO",
    "org.apache.kafka.controller": "INFO",
    "org.apache.kafka.controller.ReplicationControlManager": "DEBUG",
}


class LogFiles(NamedTuple):
    """The files of one node: the logging ``configuration`` it reads, and where it logs its ``collections``."""

    configuration: Path
    collections: Path

    def logging(self, installation: Installation, place: Callable[[Path], str] = str) -> tuple[str, ...]:
        """The words that make a JVM log to its standard output as configured, in a file that ``place`` names."""
        if installation.version >= (4, 0, 0):
            return (f"-Dlog4j2.configurationFile={place(self.configuration)}", "-Dlog4j2.disableJmx=true")
        # ZooKeeper before 3.6 would register its loggers with JMX, with classes of log4j that reload4j has not.
        return (f"-Dlog4j.configuration=file:{place(self.configuration)}", "-Dzookeeper.jmx.log4j.disable=true")

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
