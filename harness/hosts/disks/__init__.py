"""Disks of brokers' own on this machine, and how they break.

disk   a file system for each broker, which can lose power and have no room left
slow   the kernel lets few writes through
"""

from harness.hosts.disks.disk import Disks, keep_files, log_bytes
from harness.hosts.disks.slow import DiskThrottle, choose_throttle, disband, find_limit, lift

__all__ = [
    "DiskThrottle",
    "Disks",
    "choose_throttle",
    "disband",
    "find_limit",
    "keep_files",
    "lift",
    "log_bytes",
]
