"""The host "ssh": nodes on machines of an inventory, reached with paramiko.

host         the host itself; undo: what it leaves on machines, and how that goes
shell        what is asked of a machine; commands: every command that is ever given to one
connecting   the way to a machine; connection: a shell over SSH, on a session for commands and one for files
dry_run      a shell that only shows
"""

from harness.hosts.ssh.dry_run import PLACEHOLDERS, DryShell, Show
from harness.hosts.ssh.host import LocalFiles, SshHost
from harness.hosts.ssh.undo import undo_machines

__all__ = ["PLACEHOLDERS", "DryShell", "LocalFiles", "Show", "SshHost", "undo_machines"]
