"""Hosts: the places where nodes live, and what is broken in the ground under them.

contract     what a world asks of a host, wherever its nodes live
local        nodes as processes on this machine, with an address for the run
namespaces   each in a network namespace, with an address of its own
ssh          each on a machine of an inventory
cut_links, link_speed, disks, disk_speed, clocks   what is broken
processes    a node's process on this machine; control: its control socket
undo         what is undone at the end, or after a crash
"""

from harness.hosts.clocks import Clocks, faketime_library, steps_in
from harness.hosts.contract import Address, Host, Launch, NodeProcess, NodeState
from harness.hosts.disk_speed import DiskThrottle, choose_throttle, find_limit
from harness.hosts.disks import Disks, log_bytes
from harness.hosts.link_speed import FIFO, LATE, Shaper, probe_slow_links
from harness.hosts.local import LocalHost, LoopbackHost, free_addresses
from harness.hosts.namespaces import NamespaceHost
from harness.hosts.processes import NAME_PREFIX, LocalProcess
from harness.hosts.ssh import PLACEHOLDERS, DryShell, Here, Show, SshHost, undo_machines
from harness.hosts.undo import undo_here, undo_kinds

__all__ = [
    "FIFO",
    "LATE",
    "NAME_PREFIX",
    "PLACEHOLDERS",
    "Address",
    "Clocks",
    "DiskThrottle",
    "Disks",
    "DryShell",
    "Here",
    "Host",
    "Launch",
    "LocalHost",
    "LocalProcess",
    "LoopbackHost",
    "NamespaceHost",
    "NodeProcess",
    "NodeState",
    "Shaper",
    "Show",
    "SshHost",
    "choose_throttle",
    "faketime_library",
    "find_limit",
    "free_addresses",
    "log_bytes",
    "probe_slow_links",
    "steps_in",
    "undo_here",
    "undo_kinds",
    "undo_machines",
]
