"""One JVM that runs Kafka's own client for one run, and the calls to it.

Janino, which PySpark brings, compiles the Java files beside this one when the JVM starts (``Start.java``), so no Java
compiler is needed. Calls go to the JVM's standard input: secrets are on no command line, no port is taken, and the JVM
ends with its input, also after a harness that was killed. This module logs the lines that the JVM writes to standard
error.
"""

from __future__ import annotations

import itertools
import logging
import queue
import struct
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from importlib import resources, util
from pathlib import Path
from typing import IO, Final

from harness.ground.errors import HostError
from harness.worlds.clients.java.frames import Answer, End, Method, call_frame

log = logging.getLogger(__name__)

#: The class that compiles one Java file and calls its ``main``.
COMPILER: Final = "org.codehaus.janino.SimpleCompiler"
_JARS: Final = ("janino-*.jar", "commons-compiler-*.jar")
#: A JVM answers within two seconds; a busy machine gets this long.
START_LIMIT_S: Final = 60.0
#: The JVM halts at the end of its input.
END_LIMIT_S: Final = 5.0
_LENGTH: Final = struct.Struct(">i")
_HELLO: Final = 0
_LOST: Final = "the JVM of the Java client has ended; logs/clients.log may say why"


class JavaExceptionError(Exception):
    """An exception of the Java client, by the name of its class, and the end of the call that raised it."""

    def __init__(self, name: str, words: str, end: End = End.FAILED) -> None:
        super().__init__(f"{name}: {words}" if words else name)
        self.name = name
        self.words = words
        self.end = end


def compiler_jars() -> list[Path]:
    """The jars of the compiler, from the installed PySpark."""
    spec = util.find_spec("pyspark")
    home = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    return [jar for pattern in _JARS for jar in sorted((home / "jars").glob(pattern))]


def words_of_bridge() -> tuple[str, ...]:
    """The main class and the arguments of the JVM."""
    sources = resources.files("harness.worlds.clients.java")
    return (COMPILER, str(sources / "Start.java"), "Start", str(sources))


class Bridge:
    """The JVM of a run. ``release`` is the client's, ``command`` starts the JVM.

    Answers are handled on the thread that reads them, so a handler must be quick. The numbers of clients are unique
    in the life of the bridge.
    """

    def __init__(self, release: str, command: Sequence[str]) -> None:
        self.release = release
        #: The client's own properties by role, once it has started.
        self.defaults: dict[str, dict[str, str]] = {"producer": {}, "consumer": {}}
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None
        # Bounded by the callers: no more calls than the clients have outstanding.
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended = False
        self._numbers = itertools.count(_HELLO + 1)
        self._clients = itertools.count()
        self._handlers: dict[int, Callable[[Answer | None], None]] = {}
        self._listeners: dict[int, Callable[[Answer], None]] = {}
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the JVM and wait for its first word.

        Raises:
            HostError: it did not start; the text has its last words.
        """
        hello: Future[Answer | None] = Future()
        self._handlers[_HELLO] = hello.set_result
        try:
            process = subprocess.Popen(  # noqa: S603
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is the harness's alone
            )
        except OSError as error:
            raise HostError(f"the Java client does not start: {error}") from error
        self._process = process
        said: list[str] = []
        self._begin("calls", lambda: self._write_calls(process))
        self._begin("answers", lambda: self._read_answers(process))
        self._begin("log", lambda: _log_lines(process, said))
        try:
            answer = hello.result(START_LIMIT_S)
        except TimeoutError:
            answer = None
        if answer is None:
            self._process = None
            self._stop(process)
            words = said[0] if said else f"no answer within {START_LIMIT_S:.0f} s"
            raise HostError(f"the Java client {self.release} does not start: {words}")
        answer.text()
        self.defaults = {"producer": answer.properties(), "consumer": answer.properties()}

    def new_client(self) -> int:
        """The number of the next client."""
        return next(self._clients)

    def call(
        self,
        method: Method,
        client: int,
        arguments: bytes,
        limit_s: float,
        on_event: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Do a call and wait for its end; ``on_event`` gets its events, also those after its end.

        Raises:
            JavaError: the client raised an exception.
            TimeoutError: the call did not end in time.
            OSError: the JVM has ended.
        """
        ended: Future[Answer | None] = Future()
        number = self.post(method, client, arguments, ended.set_result, on_event)
        try:
            answer = ended.result(limit_s)
        finally:
            self._handlers.pop(number, None)
        if answer is None:
            raise BrokenPipeError(_LOST)
        if answer.end is not End.DONE:
            raise error_in(answer)
        return answer

    def post(
        self,
        method: Method,
        client: int,
        arguments: bytes,
        handle: Callable[[Answer | None], None] | None,
        on_event: Callable[[Answer], None] | None = None,
    ) -> int:
        """Begin a call and return its number; ``handle`` gets the answer, or None if the JVM ends before.

        A call without ``handle`` has no answer.

        Raises:
            OSError: the JVM has ended, and the call has had no effect.
        """
        if self._ended or self._process is None:
            raise BrokenPipeError(_LOST)
        number = next(self._numbers)
        if handle is not None:
            self._handlers[number] = handle
        if on_event is not None:
            self._listeners[number] = on_event
        self._frames.put(call_frame(method, client, number, arguments))
        return number

    def end(self) -> None:
        """End the JVM and its threads.

        Raises:
            HostError: the JVM had ended by itself, so what the run saw of its clients proves nothing.
        """
        process, self._process = self._process, None
        if process is None:
            return
        by_itself = self._ended
        self._stop(process)
        if by_itself:
            raise HostError(
                f"the JVM of the Java client {self.release} ended by itself with exit status {process.returncode}; "
                "logs/clients.log of the run may say why"
            )

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        self._frames.put(None)
        try:
            process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_LIMIT_S)
        for thread in self._threads:
            thread.join(END_LIMIT_S)

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=f"java-client-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _write_calls(self, process: subprocess.Popen[bytes]) -> None:
        """Write calls on a thread of their own: a JVM that stands still must not stop the run's clock."""
        assert process.stdin is not None  # noqa: S101
        with suppress(OSError), process.stdin as calls:
            while (frame := self._frames.get()) is not None:
                calls.write(frame)
                if self._frames.empty():
                    calls.flush()

    def _read_answers(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101
        with process.stdout as answers:
            while (answer := _next_answer(answers)) is not None:
                self._handle(answer)
        self._ended = True
        self._frames.put(None)
        for number in tuple(self._handlers):
            if (handler := self._handlers.pop(number, None)) is not None:
                handler(None)

    def _handle(self, answer: Answer) -> None:
        if answer.end is End.EVENT:
            self._listeners[answer.call](answer)
        elif (handler := self._handlers.pop(answer.call, None)) is not None:
            handler(answer)


def _next_answer(answers: IO[bytes]) -> Answer | None:
    """The next answer; None where the JVM ended, maybe within one."""
    head = answers.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    frame = answers.read(length)
    return Answer(frame) if len(frame) == length else None


def _log_lines(process: subprocess.Popen[bytes], first: list[str]) -> None:
    """Log what the JVM writes to standard error, and keep the first line."""
    assert process.stderr is not None  # noqa: S101
    with process.stderr as lines:
        for line in lines:
            words = line.decode(errors="replace").rstrip()
            if not first:
                first.append(words)
            log.warning("%s", words)


def error_in(answer: Answer) -> JavaExceptionError:
    """The exception in an answer that has one."""
    name = answer.text()
    return JavaExceptionError(name, answer.text(), answer.end)
