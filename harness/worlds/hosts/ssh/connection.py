"""One machine over SSH, with paramiko: its host key is verified, and everything that waits has a limit."""

from __future__ import annotations

import contextlib
import logging
import shlex
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import paramiko
from paramiko.ssh_exception import AuthenticationException, BadHostKeyException, PasswordRequiredException, SSHException
from typing_extensions import override

from harness.ground.errors import HostError
from harness.plan import Machine
from harness.worlds.hosts.ssh import commands, files
from harness.worlds.hosts.ssh.shell import Shell, ShellAnswer, shown
from workloads import reason_of

#: The limit for reaching a machine, for its identification, and for accepting the user.
CONNECT_LIMIT_S: Final = 15.0
KEEPALIVE_S: Final = 10
#: A connection that was lost is made once more.
_TURNS: Final = 2
#: GNU tar: a file changed while it was read. Anything above means that something is missing.
_PACKED_MAX: Final = 1
_LOST: Final = (SSHException, EOFError, OSError)
#: Ends the output of a command: a control character (record separator) that no command of ours prints.
_END: Final = b"\x1e"
#: A command without output for this time is given up. Java on a busy machine may be silent for seconds.
SILENCE_LIMIT_S: Final = 30.0
#: The largest answer of a command; a rule table with counters has some kilobytes.
ANSWER_BYTES_MAX: Final = 4 * 2**20
_READ_BYTES: Final = 65_536
_PAUSE_S: Final = 0.001

# Our own errors say what paramiko logs of a lost connection; without a handler that would go to standard error.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class ShellSession:
    """One shell on a machine that runs commands one after the other, over a channel of its own.

    A channel for each command would cost a start of the user's login shell, which may take half a second; here a
    command costs a message each way. A POSIX ``sh`` reads the commands, with any login shell.
    """

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        channel.settimeout(SILENCE_LIMIT_S)
        channel.exec_command("exec sh")

    @property
    def is_open(self) -> bool:
        """True while a command can be given."""
        return not (self._channel.closed or self._channel.exit_status_ready())

    def run(self, words: Sequence[str], text: str = "") -> ShellAnswer:
        """Run a command to its end, with ``text`` on its standard input.

        Raises:
            OSError: the channel ended, or was silent for SILENCE_LIMIT_S; the session cannot be used any more.
        """
        source = f"printf %s {shlex.quote(text)} | " if text else ""
        nothing = "" if text else " </dev/null"
        ends = r"s=$?; printf '\036' >&2; printf '\036%s\036' $s"
        try:
            self._channel.sendall(f"{source}{commands.line(words)}{nothing}\n{ends}\n".encode())
            out, status = self._output()
            return ShellAnswer(int(status), out.decode(errors="replace"), self._errors().decode(errors="replace"))
        except BaseException:  # Ctrl-C too: the next command must not be given this one's answer
            self._channel.close()
            raise

    def close(self) -> None:
        """End the shell. Idempotent."""
        self._channel.close()

    def _output(self) -> tuple[bytes, bytes]:
        """Read standard output, and the status between the two marks that follow it."""
        received = bytearray()
        while received.count(_END) < 2:
            chunk = self._channel.recv(_READ_BYTES)
            if not chunk:
                raise ConnectionResetError("the machine's shell ended")
            if len(received) > ANSWER_BYTES_MAX:
                raise OSError("its output is too long")
            received += chunk
        out, status, _ = bytes(received).split(_END, 2)
        return out, status

    def _errors(self) -> bytes:
        """Read standard error, whose mark was sent before those of the output."""
        received, deadline = bytearray(), time.monotonic() + SILENCE_LIMIT_S
        while not received.endswith(_END):
            if self._channel.recv_stderr_ready():
                received += self._channel.recv_stderr(_READ_BYTES)
            elif time.monotonic() > deadline:
                raise TimeoutError("its standard error does not end")
            else:
                time.sleep(_PAUSE_S)
        return bytes(received[:-1])


class Connection(Shell):
    """A shell over SSH.

    It connects when it is first used. A lost connection is made once more, but only before a command is sent, so that
    no command runs twice.
    """

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._lock = threading.Lock()
        self._client: paramiko.SSHClient | None = None
        self._session: ShellSession | None = None
        self._sftp: paramiko.SFTPClient | None = None
        self._followers: list[files.RemoteTail] = []

    @override
    def run(self, words: Sequence[str], text: str = "") -> ShellAnswer:
        try:
            if self._session is None or not self._is_up() or not self._session.is_open:
                self._session = ShellSession(self._channel())
            return self._session.run(words, text)
        except (*_LOST, ValueError) as error:
            raise self._lost(f'"{shown(words)}"', error) from error

    @override
    def read(self, path: str) -> str | None:
        with self._file_work(f"reading {path}") as sftp:
            try:
                with sftp.open(path, "r") as file:
                    return str(file.read(ANSWER_BYTES_MAX).decode(errors="replace"))
            except FileNotFoundError:
                return None  # No second look: a moment later the file may have been written.
            except TimeoutError:  # silence says nothing about the file
                raise
            except OSError:
                # A process that ends while its entry in /proc is read is an error of its own, which SFTP cannot name.
                if self._is_up() and path.startswith("/proc/"):
                    return None
                raise

    @override
    def push(self, source: Path, target: str) -> None:
        with self._file_work(f"copying {source.name} to {target}") as sftp:
            files.push(sftp, source, target)

    @override
    def push_missing(self, source: Path, target: str) -> None:
        with self._file_work(f"copying {source} to {target}") as sftp:
            files.push_missing(sftp, source, target)

    @override
    def fetch(self, source: str, names: Sequence[str], target: Path) -> None:
        channel = self._channel()
        try:
            channel.exec_command(commands.line(commands.pack(source, names)))
            files.unpack(channel.makefile("rb"), names, target)
            _see_whole(channel)
        except _LOST as error:
            raise self._lost(f"fetching {source}", error) from error
        finally:
            channel.close()

    @override
    def follow(self, source: str, target: Path) -> None:
        self._followers.append(files.RemoteTail(self._new_files, source, target))

    @override
    def unfollow(self) -> None:
        while self._followers:
            self._followers.pop().close()

    @override
    def close(self) -> None:
        self.unfollow()
        if self._client is not None:
            self._client.close()
        self._client = self._session = self._sftp = None

    def _channel(self) -> paramiko.Channel:
        """Open a session for one command."""
        for turn in range(_TURNS):
            try:
                channel = self._transport().open_session(timeout=CONNECT_LIMIT_S)
                break
            except _LOST as error:
                if self._is_up() or turn == _TURNS - 1:
                    raise self._lost("opening a session", error) from error
        channel.settimeout(SILENCE_LIMIT_S)
        return channel

    @contextlib.contextmanager
    def _file_work(self, doing: str) -> Iterator[paramiko.SFTPClient]:
        """Lend the session for files to the thread that gives commands; an interrupted one is not used again."""
        try:
            if self._sftp is None or not self._is_up():
                self._sftp = self._new_files()
            yield self._sftp
        except _LOST as error:
            self._sftp = None
            raise self._lost(doing, error) from error
        except BaseException:
            self._sftp = None
            raise

    def _new_files(self) -> paramiko.SFTPClient:
        channel = self._channel()
        try:
            channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except _LOST as error:
            raise HostError(f"{self.machine.name} offers no SFTP ({error}); enable it in its sshd_config") from error

    def _is_up(self) -> bool:
        transport = self._client.get_transport() if self._client is not None else None
        return transport is not None and transport.is_active()

    def _transport(self) -> paramiko.Transport:
        with self._lock:
            if not self._is_up():
                self._client, self._session, self._sftp = connected(self.machine), None, None
            transport = self._client.get_transport() if self._client is not None else None
        if transport is None:
            raise HostError(f"{self.machine.name} ended the connection; check that its SSH server still runs")
        return transport

    def _lost(self, doing: str, error: BaseException) -> HostError:
        why = str(error) or type(error).__name__
        return HostError(f"{self.machine.name}: {doing} did not work over SSH: {why}")


def _see_whole(channel: paramiko.Channel) -> None:
    """Raise unless the packing on the machine ended well, because the packed files are removed there afterwards."""
    if not channel.status_event.wait(SILENCE_LIMIT_S) or not 0 <= channel.exit_status <= _PACKED_MAX:
        raise OSError(f"tar ended there with status {channel.exit_status}, so files are missing")


def connected(machine: Machine) -> paramiko.SSHClient:
    """Connect to this machine, verify its host key, and log the user in.

    Raises:
        HostError: it cannot be reached, has another host key, or does not accept the user.
    """
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(_Pinned(machine))
    if not machine.fingerprint:
        _load_known_hosts(client, machine)
    key = str(Path(machine.key).expanduser()) if machine.key else None
    if key is not None and not Path(key).is_file():
        raise HostError(f"no key is at {machine.key}; name its file in the plan, or leave key out for an SSH agent")
    try:
        client.connect(
            machine.address,
            machine.port,
            machine.user,
            key_filename=key,
            allow_agent=key is None,
            look_for_keys=False,
            timeout=CONNECT_LIMIT_S,
            banner_timeout=CONNECT_LIMIT_S,
            auth_timeout=CONNECT_LIMIT_S,
        )
    except HostError:
        client.close()
        raise
    except (SSHException, OSError, EOFError, ValueError) as error:
        client.close()
        raise _refusal(machine, error) from error
    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(KEEPALIVE_S)
    return client


#: The text of paramiko's error, which has no class of its own, where neither a file nor an agent has a key.
_NO_KEYS: Final = "No authentication methods available"


class _Pinned:
    """Accepts a key that is not in known_hosts only if the plan pins its fingerprint; writes no file."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        """Refuse the key, unless it is the pinned one."""
        fingerprint, name = key.fingerprint, self._machine.name
        if not self._machine.fingerprint:
            raise HostError(
                f"the host key of {name} is not in {self._machine.known_hosts} ({key.get_name()} {fingerprint}); if "
                f'that is its key, add it there, or write fingerprint = "{fingerprint}" in the plan'
            )
        if fingerprint != self._machine.fingerprint:
            raise HostError(
                f"{name} has the host key {fingerprint} ({key.get_name()}), and the plan pins "
                f"{self._machine.fingerprint}; another machine may be answering, so nothing was sent"
            )


def _load_known_hosts(client: paramiko.SSHClient, machine: Machine) -> None:
    path = Path(machine.known_hosts).expanduser()
    try:
        client.load_system_host_keys(str(path))
    except FileNotFoundError:  # then the key is unknown, which has its own sentence
        return
    except (OSError, SSHException, ValueError) as error:
        raise HostError(
            f"{path} cannot be read as known hosts ({reason_of(error)}); name another file (known_hosts = ...)"
        ) from error


def _refusal(machine: Machine, error: BaseException) -> HostError:
    name, how = machine.name, f"key {machine.key}" if machine.key else "the keys of the SSH agent"
    if isinstance(error, BadHostKeyException):
        new, old = error.key.fingerprint, error.expected_key.fingerprint
        return HostError(
            f"the host key of {name} has changed: it is {new}, and {machine.known_hosts} holds {old}; another machine "
            "may be answering, so nothing was sent"
        )
    if isinstance(error, PasswordRequiredException):
        return HostError(f"{how} has a passphrase; add it to an SSH agent and leave key out of the plan")
    if isinstance(error, AuthenticationException) or _NO_KEYS in str(error):
        return HostError(f"{name} does not accept the user with {how} ({error}); check its authorized_keys")
    if isinstance(error, socket.gaierror):
        return HostError(f"the address of {name} does not exist ({error.strerror}); correct it in the plan")
    if isinstance(error, SSHException) and not isinstance(error, OSError):
        return HostError(
            f"{name} and this harness could not begin an SSH session with {how} "
            f"({str(error) or type(error).__name__}); check the key, and what the SSH server there allows"
        )
    return HostError(
        f"{name} cannot be reached over SSH ({str(error) or type(error).__name__}); check that sshd runs there"
    )
