"""One shell on a machine, to which commands are given one after the other.

A command of its own channel costs the start of the user's login shell, which may take half a second where people have
decorated it; here a command costs a message each way. Whatever the login shell is, commands are read by a POSIX ``sh``.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import Final

from paramiko import Channel

from harness.hosts.ssh import commands
from harness.hosts.ssh.shell import Answer

#: Ends the output of a command: a control character (record separator) that no command of ours prints.
_END: Final = b"\x1e"
#: Without a byte for so long a command is given up. Java on a busy machine may be silent for seconds.
SILENCE_LIMIT_S: Final = 30.0
#: A command's answer is read up to here; a rule table with counters has some kilobytes.
ANSWER_BYTES_MAX: Final = 4 * 2**20
_READ_BYTES: Final = 65_536
_PAUSE_S: Final = 0.001


class Session:
    """Commands over one channel, which the session owns."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        channel.settimeout(SILENCE_LIMIT_S)
        channel.exec_command("exec sh")

    @property
    def is_open(self) -> bool:
        """True while a command can be given."""
        return not (self._channel.closed or self._channel.exit_status_ready())

    def run(self, words: Sequence[str], text: str = "") -> Answer:
        """Give a command, with ``text`` on its standard input, and wait for its end.

        Raises:
            OSError: the channel ended, or was silent for SILENCE_LIMIT_S; the session is of no use any more.
        """
        source = f"printf %s {shlex.quote(text)} | " if text else ""
        nothing = "" if text else " </dev/null"
        ends = r"s=$?; printf '\036' >&2; printf '\036%s\036' $s"
        try:
            self._channel.sendall(f"{source}{commands.line(words)}{nothing}\n{ends}\n".encode())
            out, status = self._output()
            return Answer(int(status), out.decode(errors="replace"), self._errors().decode(errors="replace"))
        except BaseException:  # Ctrl-C too: the next command must not be given this one's answer
            self._channel.close()
            raise

    def close(self) -> None:
        """End the shell. Idempotent."""
        self._channel.close()

    def _output(self) -> tuple[bytes, bytes]:
        """Standard output, and the status between the two marks that follow it."""
        received = bytearray()
        while received.count(_END) < 2:
            chunk = self._channel.recv(_READ_BYTES)
            if not chunk:
                raise ConnectionResetError("the machine's shell ended")
            if len(received) > ANSWER_BYTES_MAX:
                raise OSError("its answer does not end")
            received += chunk
        out, status, _ = bytes(received).split(_END, 2)
        return out, status

    def _errors(self) -> bytes:
        """Standard error, whose mark was sent before those of the output."""
        received, deadline = bytearray(), time.monotonic() + SILENCE_LIMIT_S
        while not received.endswith(_END):
            if self._channel.recv_stderr_ready():
                received += self._channel.recv_stderr(_READ_BYTES)
            elif time.monotonic() > deadline:
                raise TimeoutError("its standard error does not end")
            else:
                time.sleep(_PAUSE_S)
        return bytes(received[:-1])
