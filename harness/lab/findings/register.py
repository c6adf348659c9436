"""The findings that can be played, by number, and the known defects of others that have a script, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.lab.findings import (
    added_partition,
    doubled_records,
    forgotten_batches,
    late_ends,
    leaderless_end,
    left_member,
    missed_commits,
    new_coordinator,
    old_coordinator,
    one_in_flight,
    overtaken_batches,
    planned_runs,
    refused_batches,
    returning_broker,
    truncated_commits,
    unstable_start,
)
from harness.lab.findings.playable import PlayableFinding

_MODULES: Final = (
    refused_batches,
    planned_runs,
    doubled_records,
    overtaken_batches,
    forgotten_batches,
    returning_broker,
    missed_commits,
    leaderless_end,
    late_ends,
    unstable_start,
    old_coordinator,
    truncated_commits,
    one_in_flight,
    left_member,
    new_coordinator,
    added_partition,
)
FINDINGS: Final[Mapping[str, PlayableFinding]] = {module.FINDING.number: module.FINDING for module in _MODULES}
