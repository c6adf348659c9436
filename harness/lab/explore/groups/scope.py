"""Scopes of consumer groups: members that come, process and commit, and what the coordinator makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from harness.lab.explore.any_scope import Few, Times
from harness.lab.explore.coordinated_scope import CoordinatedConstants, CoordinatedScope


class GroupConstants(CoordinatedConstants, frozen=True):
    """The constants of a scope of groups.

    ``members`` join when they like, by their ``protocol``. They read ``partitions`` with ``records`` each. ``fences``
    are members that are given up though they are alive.
    """

    delayed: Literal["any", "ConsumerGroupHeartbeat", "OffsetCommit"] = "any"
    protocol: Literal["consumer", "classic"] = "consumer"
    members: Few = 2
    partitions: Few = 1
    records: Times = 1
    fences: Times = 0


class GroupScope(CoordinatedScope, frozen=True):
    """A scope of groups. Its rules are :data:`harness.lab.explore.groups.rules.GROUP_RULES`."""

    constants: GroupConstants = GroupConstants()
    bounded: ClassVar[Mapping[str, str]] = {
        "members": "members",
        "partitions": "log partitions",
        "records": "records in each of them",
        "fences": "members that are given up though they are alive",
    }
    left_out: ClassVar[tuple[str, ...]] = (
        "the logs that are read: each offset has a record, and it stays",
        "members that leave, commit before they process, or have several requests under way",
        "offsets in transactions, static members, expiry; a joining that lasts too long; names that are new each time",
        "groups that change their protocol",
    )
