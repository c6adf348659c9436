"""Makes the archive of class data (JEP 350) with which tests start Spark's Java, once; without it they take longer.

Usage: .venv/bin/python -m scripts.spark_archive .venv/spark-classes.jsa
"""

import os
import sys
from pathlib import Path

from pyspark import SparkContext

from checkers import prepare, spark_context

#: Java writes the archive when it ends: in seconds, on a busy machine in more.
LIMIT_S = 120


def make(archive: Path) -> None:
    """Start Spark with a worker on each core, and end its Java in order; half an archive has another name."""
    part = archive.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f'"-XX:ArchiveClassesAtExit={part}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    prepare()
    spark_context().stop()
    java = SparkContext._gateway.proc  # noqa: SLF001 - PySpark hands it out nowhere
    java.stdin.close()
    java.wait(LIMIT_S)
    part.replace(archive)


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
