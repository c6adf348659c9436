"""The promises of consumer groups, asked of a whole state, under the names of the anomalies that checkers find in runs.

A checker sees what clients see; here the coordinator's own record is looked at, too. The assertions of the core are a
rule, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.broker.core.invariants import Broken
from harness.lab.explore.groups.coordinators import GroupCopy
from harness.lab.explore.groups.members import MemberNode

#: The rules that a search of groups looks at.
GROUP_RULES: Final = (
    "two-owners",
    "group-went-back",
    "group-skip",
    "commit-of-a-member",
    "one-member-a-partition",
    "loaded-as-logged",
    "assertion",
)


def broken_group_promises(
    coordinator: GroupCopy, members: Sequence[MemberNode], acknowledged: Sequence[int]
) -> Iterator[Broken]:
    """The promises that a state breaks, each with a sentence.

    ``acknowledged`` are the largest offsets of each log partition whose commit was acknowledged.
    """
    processed = {each for member in members for each in member.processed}
    for partition, offset in enumerate(coordinator.remembered):
        holders = coordinator.holders(partition, members)
        if len(holders) > 1:
            yield "two-owners", f"{' and '.join(holders)} may read partition {partition} at the same time"
        if offset < acknowledged[partition]:
            text = (
                f"the group remembers {offset} of partition {partition}, and {acknowledged[partition]} was acknowledged"
            )
            yield "group-went-back", text
        skipped = [number for number in range(offset) if (partition, number) not in processed]
        if skipped:
            yield (
                "group-skip",
                f"the group is past {skipped[0]} of partition {partition}, which no member has processed",
            )
