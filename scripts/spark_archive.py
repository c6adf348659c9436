"""Makes the archive of class data (JEP 350) with which tests start Spark's Java, once; without it they take longer.

Usage: .venv/bin/python -m scripts.spark_archive
"""

import os
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / ".venv" / "spark-classes.jsa"
#: Java writes the archive when it ends: in seconds, on a busy machine in more.
LIMIT_S = 120


def options(archive: Path, purpose: str = "SharedArchiveFile") -> str:
    """The options of a Java that starts with ``archive``, or makes it; one that does not fit is passed over."""
    return f'"-XX:{purpose}={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off'


def make() -> None:
    """Start Spark with a worker on each core, and end its Java in order; half an archive has another name."""
    from pyspark import SparkContext  # noqa: PLC0415 - tests that start no Spark want the options alone

    from checkers import prepare, spark_context  # noqa: PLC0415

    part = ARCHIVE.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = options(part, "ArchiveClassesAtExit")
    prepare()
    spark_context().stop()
    java = SparkContext._gateway.proc  # noqa: SLF001 - PySpark hands it out nowhere
    java.stdin.close()
    java.wait(LIMIT_S)
    part.replace(ARCHIVE)


if __name__ == "__main__":
    make()
