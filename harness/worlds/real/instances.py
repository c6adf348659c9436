"""The instances of an application under test, as processes of this machine (:class:`workloads.InstanceProcesses`).

Each instance leads a session of its own, so signals reach whatever it started, and carries a mark in its environment
that its children inherit: what left the session is found by the mark. It is in the journal before it is started, so
that ``ackproof heal`` ends it, and all that carry its mark, after a harness that died.

What an instance prints goes through a pipe into a file that does not grow beyond a limit. A program that prints without
end neither fills the disk nor waits for a reader.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from harness.ground.errors import HostError, PlanError
from harness.records.journal import Journal
from harness.worlds.hosts import TOKEN_VARIABLE, end, marked_with
from harness.worlds.real.instance_links import InstanceLinks, group_of, require_cuts, why_no_cuts
from workloads import ApplicationPlan, reason_of

#: The most bytes of one instance's output that are kept from its begin, and the bytes of its end that are remembered.
KEPT_BYTES: Final = 8 * 2**20
END_BYTES: Final = 8 * 2**10
#: The words of a log's end in a report.
WORDS_BYTES: Final = 2_000
#: Time for a killed process to be gone, and for its output to be read to the end.
GONE_S: Final = 5.0
_POLL_S: Final = 0.002
#: The longest time of the command that prints the effects of a sink, and the most that is read of it.
EFFECTS_LIMIT_S: Final = 60.0
EFFECTS_BYTES: Final = 128 * 2**20
#: Topics of the brokers' own begin so.
_INTERNAL: Final = "__"
_ASK_LIMIT_MS: Final = 5_000


def require_command(plan: ApplicationPlan) -> None:
    """Refuse a command that this machine does not have.

    Raises:
        PlanError: what to write.
    """
    path = plan.environment.get("PATH", os.environ.get("PATH"))
    for program in (plan.command[0], *plan.effects[:1]):
        if "{" not in program and shutil.which(program, path=path) is None:
            raise PlanError(
                f"there is no command {program!r} here; write the path of the program under [application] command, or "
                "after --"
            )


class _Output:
    """The output of one start of an instance, read by a thread of its own until the pipe is closed."""

    def __init__(self, pipe: IO[bytes], file: Path) -> None:
        self._pipe, self._file = pipe, file
        self._begin, self._end = b"", b""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._copy, name="instance output", daemon=True)
        self._thread.start()

    def words(self) -> str:
        """The end of what was printed."""
        with self._lock:
            return self._end[-WORDS_BYTES:].decode(errors="replace")

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Tell if a line at the begin, or at the end, matches."""
        with self._lock:
            text = self._begin + b"\n" + self._end
        return pattern.search(text.decode(errors="replace")) is not None

    def finish(self, limit_s: float) -> None:
        """Wait until it was read to its end; what keeps the pipe open after that is not waited for."""
        self._thread.join(limit_s)

    def _copy(self) -> None:
        with suppress(OSError, ValueError), self._file.open("ab") as kept:
            room = max(0, KEPT_BYTES - kept.tell())
            while chunk := os.read(self._pipe.fileno(), 2**16):
                kept.write(chunk[:room])
                kept.flush()
                room -= len(chunk[:room])
                with self._lock:
                    self._begin += chunk[: max(0, END_BYTES - len(self._begin))]
                    self._end = (self._end + chunk)[-END_BYTES:]
            if not room:
                kept.write(b"\n... the rest was left out; its end:\n" + self._end)
        with suppress(OSError):
            self._pipe.close()


class _Process:
    """One start of an instance."""

    def __init__(self, child: subprocess.Popen[bytes], output: _Output, token: str, entry: int) -> None:
        self.child, self.output, self.token, self.entry = child, output, token, entry
        self.frozen = False
        self.cleared = False


class LocalInstances:
    """All instances of one run; their files are in ``directory``."""

    def __init__(
        self, plan: ApplicationPlan, words: Mapping[str, str], directory: Path, journal: Journal, topics: Sequence[str]
    ) -> None:
        """``words`` are the placeholders that all instances share, ``topics`` those of the run.

        Instances have groups of their own, by which they can be cut off, where this machine can do that.
        """
        self._links = None if why_no_cuts() else InstanceLinks(words["bootstrap"], journal)
        self._plan, self._words, self._directory, self._journal = plan, words, directory, journal
        self._topics = frozenset(topics)
        self._ready = re.compile(plan.ready, re.MULTILINE) if plan.ready and not _port(plan.ready) else None
        self._processes: dict[int, _Process] = {}

    def start(self, instance: int) -> int:
        """Start an instance that does not run; its process id.

        Raises:
            HostError: the command cannot be executed.
        """
        own = self._directory / f"instance-{instance}"
        own.mkdir(parents=True, exist_ok=True)
        words = {"instance": str(instance), "directory": str(own)}
        group = None if self._links is None else group_of(instance)
        child, token, entry = self._begun(self._plan.command, words, f"instance {instance}", subprocess.PIPE, group)
        assert child.stdout is not None  # noqa: S101 - it was asked for
        output = _Output(child.stdout, self._directory / f"instance-{instance}.log")
        self._processes[instance] = _Process(child, output, token, entry)
        return child.pid

    def printed_effects(self) -> tuple[Sequence[str], str]:
        """Run the plan's command ``effects`` to its end; what it prints is in a file of the directory."""
        file, name = self._directory / "effects.log", "the command under [application] effects"
        own = {"instance": "", "directory": str(self._directory)}
        with file.open("wb") as printed:
            try:
                child, token, entry = self._begun(self._plan.effects, own, "effects", printed)
            except HostError as error:
                return (), str(error)
            try:
                status = child.wait(EFFECTS_LIMIT_S)
                why = f"{name} ended with status {status}" if status else ""
            except subprocess.TimeoutExpired:
                why = f"{name} did not end within {EFFECTS_LIMIT_S:.0f} s"
            _signal_session(child.pid, signal.SIGKILL)
            for identity in marked_with(token):
                end(identity)
            child.wait(GONE_S)
            self._journal.done(entry)
        if file.stat().st_size > EFFECTS_BYTES:
            why = why or f"{name} printed more than {EFFECTS_BYTES:,} bytes"
        with file.open(encoding="utf-8", errors="replace") as printed_text:
            return printed_text.read(EFFECTS_BYTES).splitlines(), why

    def _begun(
        self,
        command: Sequence[str],
        own: Mapping[str, str],
        node: str,
        stdout: int | IO[bytes],
        group: int | None = None,
    ) -> tuple[subprocess.Popen[bytes], str, int]:
        """A process of the user's in a session of its own, its mark, and its entry in the journal.

        Raises:
            HostError: the command cannot be executed.
        """
        words = {**self._words, **own}
        command = [_filled(word, words) for word in command]
        environment = {name: _filled(content, words) for name, content in self._plan.environment.items()}
        token = f"application-{uuid.uuid4().hex}"
        entry = self._journal.intend("process", {"token": token, "node": node, "command": command})
        try:
            child = subprocess.Popen(  # noqa: S603 - it is the user's own command
                command,
                env=os.environ | environment | {TOKEN_VARIABLE: token},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.STDOUT if stdout == subprocess.PIPE else subprocess.DEVNULL,
                start_new_session=True,
                group=group,
            )
        except OSError as error:
            self._journal.done(entry)
            raise HostError(f"{node} cannot be started with {command[0]}: {reason_of(error)}") from error
        return child, token, entry

    def exit(self, instance: int) -> str | None:
        """Say how it ended, None while it runs."""
        status = self._processes[instance].child.poll()
        if status is None:
            return None
        return f"signal {-status}" if status < 0 else f"status {status}"

    def words(self, instance: int) -> str:
        """The end of what it printed."""
        output = self._processes[instance].output
        if self.exit(instance) is not None:
            output.finish(0.5)
        return output.words()

    def is_ready(self, instance: int, ready: str) -> bool:
        """Tell if it listens on the port, or has printed the line, that ``ready`` says."""
        if port := _port(ready):
            with socket.socket() as asking:
                asking.settimeout(0.2)
                return asking.connect_ex(("127.0.0.1", port)) == 0
        return self._ready is None or self._processes[instance].output.matches(self._ready)

    def ask_to_end(self, instance: int) -> None:
        """Send SIGTERM to it, and to it alone: what it started, it ends itself."""
        process = self._processes[instance]
        if process.child.poll() is None:
            process.child.send_signal(signal.SIGTERM)

    def kill(self, instance: int) -> None:
        """Send SIGKILL to it and to all that carry its mark, and wait for the end; a second call does nothing.

        Raises:
            HostError: something of it is still there.
        """
        process = self._processes.get(instance)
        if process is None or process.cleared:
            return
        _signal_session(process.child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.child.wait(GONE_S)
        deadline = time.monotonic() + GONE_S
        while left := list(marked_with(process.token)):
            for identity in left:
                end(identity)
            if time.monotonic() > deadline:
                raise HostError(f"instance {instance} left process {left[0].pid} behind, which SIGKILL does not end")
            time.sleep(_POLL_S)
        process.cleared = True
        process.output.finish(0.5)
        self._journal.done(process.entry)

    def freeze(self, instance: int) -> None:
        """Send SIGSTOP to its session."""
        process = self._processes[instance]
        if process.child.poll() is None:
            process.frozen = True
            _signal_session(process.child.pid, signal.SIGSTOP)

    def thaw(self, instance: int) -> None:
        """Send SIGCONT to its session, if it was frozen."""
        process = self._processes[instance]
        if process.frozen:
            process.frozen = False
            _signal_session(process.child.pid, signal.SIGCONT)

    def learn_brokers(self) -> None:
        """Ask for the addresses of brokers, while all run, so that instances can be cut off from them.

        Raises:
            PlanError: this machine cannot do that.
        """
        require_cuts()
        if self._links is not None:
            self._links.learn()

    def cut(self, instance: int, broker: int) -> bool:
        """Let nothing that the instance sends arrive at this broker; tells if that was done."""
        return self._links is not None and self._links.cut(instance, broker)

    def mend(self, instance: int) -> int | None:
        """Let it reach every broker again; the packets that were dropped, None where it was not cut off."""
        return None if self._links is None else self._links.mend(instance)

    def other_topics(self) -> tuple[str, ...]:
        """The topics that are neither the run's nor the brokers' own."""
        servers = self._words["bootstrap"].split(",")
        try:
            consumer = KafkaConsumer(bootstrap_servers=servers, request_timeout_ms=_ASK_LIMIT_MS)
        except (KafkaError, ValueError):
            return ()
        try:
            every = consumer.topics()
        except KafkaError:
            return ()
        finally:
            consumer.close()
        return tuple(sorted(topic for topic in every if topic not in self._topics and not topic.startswith(_INTERNAL)))

    def close(self) -> None:
        """End all of them, and whatever they left behind."""
        for instance in self._processes:
            self.kill(instance)
        if self._links is not None:
            self._links.close()


def _port(ready: str) -> int:
    """The port of a ``ready`` that names one, else 0."""
    head, _, number = ready.partition(":")
    return int(number) if head == "port" and number.isdecimal() else 0


def _filled(text: str, words: Mapping[str, str]) -> str:
    """A text with its placeholders replaced."""
    for name, instead in words.items():
        text = text.replace(f"{{{name}}}", instead)
    return text


def _signal_session(leader: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, what)
