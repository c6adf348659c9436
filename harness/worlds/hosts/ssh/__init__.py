"""The host "ssh" runs nodes on machines of an inventory, which it reaches with paramiko.

host         the host itself; undo: removes what it leaves on machines
shell        the contract of a shell on a machine; commands: every command that a machine is given
connecting   chooses the way to a machine; connection: a shell over SSH, with one session for commands and one for files
dry_run      a shell that only shows its commands
"""

from harness.worlds.hosts.ssh.dry_run import PLACEHOLDERS, DryShell, Show
from harness.worlds.hosts.ssh.host import LocalFiles, SshHost
from harness.worlds.hosts.ssh.undo import undo_machines

__all__ = ["PLACEHOLDERS", "DryShell", "LocalFiles", "Show", "SshHost", "undo_machines"]
