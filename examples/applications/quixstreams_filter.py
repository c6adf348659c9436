"""An application of Quix Streams, which promises at least once: it passes on what it reads.

ackproof campaign examples/applications/quixstreams.toml
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from quixstreams import Application


def main(arguments: Sequence[str]) -> int:
    """Read, write, commit; until SIGTERM."""
    bootstrap, source, target, group = arguments
    app = Application(
        broker_address=bootstrap,
        consumer_group=group,
        auto_offset_reset="earliest",
        processing_guarantee="at-least-once",
        commit_interval=1.0,
        auto_create_topics=False,
        use_changelog_topics=False,
        consumer_extra_config={"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000},
    )
    rows = app.dataframe(app.topic(source, key_deserializer="bytes", value_deserializer="json"))
    rows.to_topic(app.topic(target, key_serializer="bytes", value_serializer="json"))
    app.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
