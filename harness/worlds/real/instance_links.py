"""The links between instances of an application and single brokers, cut on this machine.

The sockets of an instance, and of all that it starts, carry a group id of the instance's own. A rule of nftables drops
the packets that such a socket sends to a broker's address, and counts them; other clients are not touched. What a
broker sends arrives, until it waits for an acknowledgement. This works wherever the brokers are. It needs root, and
the command ``nft``. Each cut has a table of its own, which is in the journal before it is made.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from harness.ground.errors import HostError, PlanError
from harness.records.journal import Journal
from harness.worlds.hosts import TABLE, boot_id, run
from workloads import reason_of

#: Group ids of instances begin here: far above those that people have.
_FIRST_GROUP: Final = 770_000_000
_PACKETS: Final = re.compile(r"counter packets (\d+)")
_ASK_LIMIT_MS: Final = 5_000
#: The words before what a failing ``nft`` says.
_FAILURE: Final = "instances cannot be cut off on this machine, leave instance-cut out"


def why_no_cuts() -> str:
    """Say what this machine lacks to cut instances off; "" if it can."""
    if os.geteuid() != 0:
        return "instances are cut off by rules of the kernel, which needs root; run as root, or leave instance-cut out"
    if shutil.which("nft") is None:
        return "instances are cut off by the command nft; install the package nftables, or leave instance-cut out"
    if not any(first <= _FIRST_GROUP < first + count for first, count in _groups_here()):
        return "instances are cut off by group ids that this container does not have; leave instance-cut out"
    return ""


def _groups_here() -> list[tuple[int, int]]:
    """The group ids that there are in this user namespace: the first, and how many, of each range."""
    ranges = [line.split() for line in Path("/proc/self/gid_map").read_text(encoding="ascii").splitlines()]
    return [(int(first), int(count)) for first, _, count in ranges]


def require_cuts() -> None:
    """Refuse to cut instances off on a machine that cannot.

    Raises:
        PlanError: what it lacks.
    """
    if why_not := why_no_cuts():
        raise PlanError(why_not)


def group_of(instance: int) -> int:
    """The group id of an instance's processes."""
    return _FIRST_GROUP + instance


class InstanceLinks:
    """The cuts of one run. ``bootstrap`` are its brokers' addresses, by which the others are known."""

    def __init__(self, bootstrap: str, journal: Journal) -> None:
        self._bootstrap, self._journal = bootstrap, journal
        self._addresses: Mapping[int, Sequence[tuple[str, int]]] = {}
        self._cut: dict[int, tuple[str, int]] = {}

    def learn(self) -> None:
        """Ask the cluster for the addresses of its brokers, while all run."""
        self._addresses = _addresses(self._bootstrap)

    def cut(self, instance: int, broker: int) -> bool:
        """Let nothing arrive at this broker that the instance sends; tells if that was done.

        Raises:
            HostError: the kernel takes no such rule.
        """
        if not self._addresses:
            self.learn()
        addresses = self._addresses.get(broker, ())
        if instance in self._cut or not addresses:
            return False
        table = f"{TABLE}_{uuid.uuid4().hex[:12]}"
        rules = "\n".join(
            f"meta skgid {group_of(instance)} ip daddr {host} tcp dport {port} counter drop" for host, port in addresses
        )
        entry = self._journal.intend("table", {"name": table, "boot_id": boot_id()})
        chain = f"chain out {{\ntype filter hook output priority 0;\n{rules}\n}}"
        run(["nft", "-f", "-"], f"table inet {table} {{\n{chain}\n}}\n", failure=_FAILURE)
        self._cut[instance] = table, entry
        return True

    def mend(self, instance: int) -> int | None:
        """Let the instance reach every broker again; the packets that were dropped, None where it was not cut off."""
        if (cut := self._cut.pop(instance, None)) is None:
            return None
        table, entry = cut
        listed = run(["nft", "list", "table", "inet", table], None, failure=_FAILURE)
        run(["nft", "delete", "table", "inet", table], None, failure=_FAILURE)
        self._journal.done(entry)
        return sum(map(int, _PACKETS.findall(listed)))

    def close(self) -> None:
        """Let every instance reach every broker again."""
        for instance in [*self._cut]:
            self.mend(instance)


def _addresses(bootstrap: str) -> dict[int, list[tuple[str, int]]]:
    """By broker, the IPv4 addresses and ports under which clients know it."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), request_timeout_ms=_ASK_LIMIT_MS)
    try:
        return {
            int(broker["broker_id"]): [
                (str(entry[4][0]), int(broker["port"]))
                for entry in socket.getaddrinfo(broker["host"], None, socket.AF_INET, socket.SOCK_STREAM)
            ]
            for broker in admin.describe_cluster()["brokers"]
        }
    except (OSError, KafkaError) as error:
        raise HostError(f"the addresses of brokers cannot be had: {reason_of(error)}") from error
    finally:
        admin.close()
