"""One Spark context for a process: local threads, or a cluster by its master's address."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import py_compile
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from checkers.errors import JavaMissingError, SilentMasterError, WrongMasterError
from checkers.histories.scratch import Scratch, ScratchKind

#: The driver only holds findings and the small core of a dependency graph; rows live in Python workers.
DRIVER_MEMORY: Final = "1g"
#: Held by the thread that starts the context; others wait for it.
_STARTING: Final = threading.RLock()
#: The environment variable that names a master where no option does.
MASTER: Final = "ACKPROOF_SPARK_MASTER"
#: Packages that workers of a cluster need; a driver ships them.
SHIPPED: Final = ("checkers", "nemesis", "workloads")
#: Files of them that are sent: modules, and data such as stories.
_SHIPPED_FILES: Final = {".py", ".toml"}

#: Begins of the names of masters (Spark's "Master URLs"), as spark-submit looks at them before it starts.
_MASTERS: Final = ("spark:", "yarn", "k8s:", "local")
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    "spark.driver.memory": DRIVER_MEMORY,
    # A JVM whose Python was interrupted while it started would otherwise wait for it for ever.
    "spark.submit.callSystemExitOnMainExit": "true",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Starting a JVM is most of a small check: the first compiler tier is enough, and class data is shared.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xshare:auto -XX:+UseSerialGC",
}

_QUIET: Final = """rootLogger.level = error
logger.repl.name = org.apache.spark.repl.Main
logger.repl.level = error
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


def spark_context(master: str | None = None) -> Any:
    """The process's Spark context, started at the first call and kept; another master ends it and starts a new one.

    ``master`` is by default what the environment variable ACKPROOF_SPARK_MASTER names, else local threads, one a core.
    A session, which is for data frames, would take more than a second longer.

    Raises:
        JavaMissingError: Java is missing, or Spark cannot start with it.
        WrongMasterError: no master is named.
        SilentMasterError: the master does not answer.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wanted = master or os.environ.get(MASTER) or _usual_master()
    if wanted is not None and not wanted.startswith(_MASTERS):
        raise WrongMasterError(
            f'"{wanted}" is not a Spark master; write spark://HOST:7077, or leave it out for local threads'
        )
    with _STARTING:
        running = _running()
        if running is None or wanted not in (None, running.master):
            stop()
            running = _started(wanted)
    return running


def prepare() -> None:
    """Start the context with a worker on each core, which loads the checkers: in a thread, while others wait.

    Where it cannot start, the call that needs it says why.
    """
    with contextlib.suppress(Exception):
        context = spark_context()
        cores = context.defaultParallelism
        context.parallelize(range(cores), cores).foreach(_load)


def _load(_: int) -> None:
    import checkers.verdicts.partial_verdict  # noqa: F401, PLC0415 - in a worker


def _started(wanted: str | None) -> Any:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - importing Spark takes half a second
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    leave_out_ended_calls()
    settings = {} if wanted is None else {"spark.master": wanted, **_settings(wanted)}
    conf = SparkConf().setAppName("ackproof").setAll(list(settings.items()))
    # The JVM's output is of interest only where it does not start.
    with tempfile.TemporaryFile() as output:
        try:
            gateway = SparkContext._gateway or launch_gateway(conf, {"stderr": output})  # noqa: SLF001 - of an earlier one
            started = SparkContext(conf=conf, gateway=gateway)
            ship(started, *SHIPPED)
        except PySparkException as error:
            raise _java_missing("; ".join(_lines(output)[:2]) or _first_line(error)) from error
        except Exception as error:  # Py4J raises whatever the JVM threw
            stop()
            raise SilentMasterError(f"Spark master {wanted} cannot be used: {cause_of(error)}") from error
    return started


def leave_out_ended_calls() -> None:
    """Print no traceback of a call to Java that Ctrl-C or Java's death ended: the caller gets an error all the same.

    Py4J logs the call to the root logger, and the connection that it closes then to its own.
    """
    for name in ("root", "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_no_ended_call)


def _is_no_ended_call(record: logging.LogRecord) -> bool:
    return not str(record.msg).endswith(("while sending command.", "while shutting down connection"))


def _lines(output: IO[bytes]) -> list[str]:
    output.seek(0)
    return [line.strip() for line in output.read().decode(errors="replace").splitlines() if line.strip()]


def is_wanted(master: str | None) -> bool:
    """True where the user chose how Spark runs, or it runs in this process already."""
    return bool(master or os.environ.get(MASTER) or _usual_master() is None or _running() is not None)


def _running() -> Any:
    """The context of this process, None if it has no context."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext  # noqa: PLC0415

    return SparkContext._active_spark_context  # noqa: SLF001 - what getOrCreate looks at; it would start one


def _usual_master() -> str | None:
    """Local threads, as many as Java may use processors; None under spark-submit, which has chosen already."""
    return None if "PYSPARK_GATEWAY_PORT" in os.environ else "local[*]"


def stop() -> None:
    """End the context, if it runs, and its JVM's work."""
    running = _running()
    if running is not None:
        running.stop()


def end_session() -> None:
    """End the context and its Java, also where that is dead already; the next call that needs Spark starts it again."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext  # noqa: PLC0415

    gateway, running = SparkContext._gateway, _running()  # noqa: SLF001 - PySpark keeps a dead one for ever
    with contextlib.suppress(Exception):  # a dead Java answers in many ways
        stop()
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        gateway.proc.kill()
        gateway.proc.wait()
    if running is not None or gateway is not None:
        SparkContext._active_spark_context = None  # noqa: SLF001
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def _settings(master: str) -> dict[str, str]:
    settings = dict(_SETTINGS)
    options = _scratch() / "log4j2.properties"
    options.write_text(_QUIET)
    settings["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile=file:{options}"
    if master.startswith("local"):
        # A process killed together with its Java leaves this directory to the next one, or to `ackproof heal`.
        settings["spark.local.dir"] = str(_scratch())
        settings["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={_scratch()}"'
    else:
        # A cluster's driver must be reachable; its operator sets the address in SPARK_LOCAL_IP.
        host = os.environ["SPARK_LOCAL_IP"]
        settings |= {"spark.driver.host": host, "spark.driver.bindAddress": host}
    return settings


def _java_missing(why: str) -> JavaMissingError:
    return JavaMissingError(
        "PySpark could not start Java: install openjdk-17-jre-headless (or any Java from 17 that has the module "
        f"jdk.incubator.vector), or point JAVA_HOME at such a Java ({why})"
    )


@cache
def _scratch() -> Path:
    """A directory of this process's own, gone with it."""
    scratch = Scratch(ScratchKind.SPARK)
    atexit.register(scratch.close)
    return scratch.path


def cause_of(error: Exception) -> str:
    """The one line that a user needs of an error that the JVM threw."""
    text = str(error)
    # The second is what Spark trips over where it clears away a context that never was.
    if (
        "stopped SparkContext" in text or "SparkEnv.driverTmpDir" in text
    ):  # the rest of a context whose master never answered, or went away
        return "the master does not answer; start it, or name another with --master"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or [type(error).__name__])[-1][:500]


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def ship(context: Any, *packages: str) -> None:
    """Send these packages of ackproof to the workers of a cluster, which import them from then on.

    Local workers import what this process does.
    """
    if context.master.startswith("local"):
        return
    target = _scratch() / f"ackproof-{'-'.join(packages)}.zip"
    if not target.exists():
        _archive(target, packages)
    context.addPyFile(str(target))


def _archive(target: Path, packages: Iterable[str]) -> None:
    """Write the modules of ``packages`` into the file ``target``, and the data that modules read."""
    root = Path(__file__).resolve().parents[2]
    with zipfile.ZipFile(target, "w") as archive:
        for package in packages:
            for file in sorted((root / package).rglob("*")):
                name = file.relative_to(root)
                if file.suffix in _SHIPPED_FILES:
                    archive.write(file, name)
                if file.suffix == ".py":
                    archive.writestr(str(name.with_suffix(".pyc")), _compiled(file))


def _compiled(file: Path) -> bytes:
    """The module of ``file`` as workers import it: each of them would compile the source of what it imports.

    It says that it needs no look at the source; a worker whose Python is another passes it over.
    """
    target = _scratch() / "module.pyc"
    py_compile.compile(
        str(file), str(target), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    return target.read_bytes()
