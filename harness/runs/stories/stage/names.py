"""Brokers and records by their names in scripts."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class BrokerRole(StrEnum):
    """A broker by what it is to the log partition at the moment of the step, as the controller sees it.

    The former leader is the last one before the present leader, or the last one at all while no broker leads; the other
    follower is the first replica that is neither. The coordinator is the leader of another log, that of transactions or
    of groups.
    """

    LEADER = "leader"
    FORMER_LEADER = "the former leader"
    OTHER_FOLLOWER = "the other follower"
    COORDINATOR = "the coordinator"


#: The brokers of every script.
BROKERS: Final = (0, 1, 2)
#: A broker by number or by role.
Broker = int | BrokerRole
#: A record by its name.
Record = str
#: Every record that a script has without writing it.
BASE: Final[Record] = "base"
