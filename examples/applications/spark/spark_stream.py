"""A job of Spark Structured Streaming from Kafka to Kafka, which promises at least once.

ackproof campaign examples/applications/spark.toml
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

#: Kafka's source and sink, which Maven has brought (see spark.toml), without what Spark has itself.
JARS = [
    str(jar)
    for jar in sorted((Path(__file__).parent / "target" / "libs").glob("*.jar"))
    if "kafka" in jar.name or jar.name.startswith("commons-pool2")
]


def main(arguments: Sequence[str]) -> int:
    """Copy the input to the output; until SIGTERM."""
    bootstrap, source, target, directory = arguments
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(JARS))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "600m")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        rows.selectExpr("key", "value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(processingTime="1 second")
        .start()
    )
    query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
