"""Hosts run the processes of nodes, and break links, disks and clocks below them.

contract     what a world may ask of any host
local        nodes as processes on this machine, with an address for the run
namespaces   each node in a network namespace, with an address of its own
ssh          each node on a machine of an inventory
cut_links, link_speed, disks, disk_speed, clocks   faults below the nodes
ports        the ports of the nodes, held for the run
operator_commands   nodes elsewhere, broken and mended by commands of their operator
processes    a node's process on this machine; node_calls: requests to its control socket
undo         undoes what a run left, at its end or after a crash
"""

from harness.worlds.hosts.clocks import Clocks, steps_in
from harness.worlds.hosts.contract import Address, Host, Launch, NodeProcess, NodeState
from harness.worlds.hosts.cut_links import TABLE
from harness.worlds.hosts.disk_speed import DiskThrottle, choose_throttle, find_limit
from harness.worlds.hosts.disks import MountedDisk, log_bytes, make_disks, probe_disks
from harness.worlds.hosts.link_speed import probe_slow_links
from harness.worlds.hosts.local import LocalHost, LoopbackHost
from harness.worlds.hosts.namespaces import NamespaceHost
from harness.worlds.hosts.namespaces import probe as probe_namespaces
from harness.worlds.hosts.node_calls import NodeCall
from harness.worlds.hosts.operator_commands import CommandedNodes, CommandEnd
from harness.worlds.hosts.ports import ADDRESS_TAKEN, PORT_CHOICES, Ports
from harness.worlds.hosts.processes import (
    NAME_PREFIX,
    TOKEN_VARIABLE,
    LocalProcess,
    attempt,
    boot_id,
    end,
    marked_with,
    run,
)
from harness.worlds.hosts.ssh import PLACEHOLDERS, DryShell, LocalFiles, Show, SshHost, undo_machines
from harness.worlds.hosts.undo import undo_here, undo_kinds

__all__ = [
    "ADDRESS_TAKEN",
    "NAME_PREFIX",
    "PLACEHOLDERS",
    "PORT_CHOICES",
    "TABLE",
    "TOKEN_VARIABLE",
    "Address",
    "Clocks",
    "CommandEnd",
    "CommandedNodes",
    "DiskThrottle",
    "DryShell",
    "Host",
    "Launch",
    "LocalFiles",
    "LocalHost",
    "LocalProcess",
    "LoopbackHost",
    "MountedDisk",
    "NamespaceHost",
    "NodeCall",
    "NodeProcess",
    "NodeState",
    "Ports",
    "Show",
    "SshHost",
    "attempt",
    "boot_id",
    "choose_throttle",
    "end",
    "find_limit",
    "log_bytes",
    "make_disks",
    "marked_with",
    "probe_disks",
    "probe_namespaces",
    "probe_slow_links",
    "run",
    "steps_in",
    "undo_here",
    "undo_kinds",
    "undo_machines",
]
