"""Kafka's own Java client: the words that start its JVM, and what is special about its properties.

Janino, which PySpark brings, compiles the Java files beside this one when the JVM starts (``Start.java``), so no Java
compiler is needed.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources, util
from pathlib import Path
from typing import Final

from harness.worlds.clients.java import configuration
from harness.worlds.clients.programs.client import StartedProgram, program_library
from harness.worlds.clients.programs.process import ClientProcess
from harness.worlds.clients.real_clients import ClientLibrary
from workloads import classify

#: The class that compiles one Java file and calls its ``main``.
COMPILER: Final = "org.codehaus.janino.SimpleCompiler"
_JARS: Final = ("janino-*.jar", "commons-compiler-*.jar")


def compiler_jars() -> list[Path]:
    """The jars of the compiler, from the installed PySpark."""
    spec = util.find_spec("pyspark")
    home = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    return [jar for pattern in _JARS for jar in sorted((home / "jars").glob(pattern))]


def words_of_bridge() -> tuple[str, ...]:
    """The main class and the arguments of the JVM."""
    sources = resources.files("harness.worlds.clients.java")
    return (COMPILER, str(sources / "Start.java"), "Start", str(sources))


def java_process(release: str, command: tuple[str, ...]) -> ClientProcess:
    """The JVM of a run, with the client of this ``release``; ``command`` starts it."""
    return ClientProcess(f"the Java client {release}", command)


def java_library(process: ClientProcess) -> ClientLibrary:
    """The clients of the run that this JVM belongs to."""
    library = program_library(StartedProgram(process, configuration.for_java, classify))
    release = process.hello.version
    names = {"library": f"kafka-clients {release} (Java)"}
    return replace(
        library,
        name=f"java {release}",
        login_settings=configuration.security_properties,
        defaults={role: {**own, **names} for role, own in library.defaults.items()},
    )
