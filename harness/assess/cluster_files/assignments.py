"""Reads where replicas are from JSON of kafka-reassign-partitions.sh, and from the text that it prints around it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from harness.assess.cluster_files.evidence import ClusterEvidence, ReadPartition

_CURRENT: Final = re.compile(r"^Current partition replica assignment\s*$", re.MULTILINE)
_PROPOSED: Final = re.compile(r"^Proposed partition reassignment configuration\s*$", re.MULTILINE)


def is_reassignment_text(text: str) -> bool:
    """True if the tool printed the text around an assignment."""
    return bool(_CURRENT.search(text) or _PROPOSED.search(text))


def current_assignment(text: str) -> object:
    """The JSON of the present assignment in what ``--generate`` or ``--execute`` printed: what is proposed is not yet.

    Raises:
        ValueError: it is not there.
    """
    current = _CURRENT.search(text)
    if current is None:
        raise ValueError('it has only what is proposed; give the part under "Current partition replica assignment"')
    behind = text[current.end() :].lstrip()
    content, _ = json.JSONDecoder().raw_decode(behind)
    return content


def read_assignment(content: Mapping[str, object], file: str, evidence: ClusterEvidence) -> None:
    """Take over log partitions with their replicas.

    Raises:
        ValueError: it has another form.
        PlanError: it contradicts another file.
    """
    rows = content["partitions"]
    if not isinstance(rows, list) or not rows:
        raise ValueError("its partitions are no list")
    for row in rows:
        replicas = tuple(int(broker) for broker in row["replicas"])
        evidence.put_partition(str(row["topic"]), int(row["partition"]), ReadPartition(file, replicas))
