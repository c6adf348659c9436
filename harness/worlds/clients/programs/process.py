"""One process of a client program for one run: its start, the calls to it, its answers, and its end.

Calls go to the program's standard input: secrets are on no command line, no port is taken, and the program ends with
its input, also after a harness that was killed. The lines that it writes to standard error are logged. A program that
does not keep to the protocol is killed, and the run ends with a sentence that says what it did.
"""

from __future__ import annotations

import fcntl
import itertools
import logging
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import IO, Final, NamedTuple

from harness.ground.errors import HostError
from harness.worlds.clients.credentials import without_secrets
from harness.worlds.clients.programs.messages import (
    CAPABILITIES,
    PROTOCOL,
    Answer,
    End,
    Method,
    ProgramCall,
    ProgramHello,
    ProtocolError,
    ToldClass,
    answer_in,
    hello_in,
    line_of,
    refuse_incomplete,
)

log = logging.getLogger(__name__)

#: A program says its first word within two seconds; a busy machine gets this long.
START_LIMIT_S: Final = 60.0
#: A program ends by itself at the end of its input.
END_LIMIT_S: Final = 5.0
#: A call that still has no answer this long after its limit never gets one.
OVERDUE_S: Final = 10.0
#: The longest line of a program: ten times what a poll of FETCH_MAX_BYTES can be.
LINE_MAX: Final = 64 * 2**20
#: Answers that wait to be read, in the pipe and here.
BUFFER_BYTES: Final = 2**20
#: Calls that are written together.
CALLS_BYTES: Final = 2**16
#: News of assignments; a member that is dealt log partitions a thousand times a run has a problem of another kind.
EVENTS_MAX: Final = 10_000
#: Lines of standard error that are logged, and the most bytes of each.
LOGGED_MAX: Final = 20_000
_LOGGED_BYTES: Final = 4_096
#: The first line of standard error and the last ones: a Java tells its error first, others last.
_LAST_LINES: Final = 4
_SHOWN_MAX: Final = 200
#: A program that has not said its first word is taken to have every capability.
_UNKNOWN: Final = ProgramHello(hello=PROTOCOL, name="", version="", capabilities=CAPABILITIES)


class ClientError(Exception):
    """An error of the library behind a program: its name, its words, and the class that the library gives it."""

    def __init__(self, name: str, words: str, told_class: ToldClass = ToldClass.FAILED) -> None:
        super().__init__(f"{name}: {words}" if words else name)
        self.name = name
        self.words = words
        self.told_class = told_class


Handler = Callable[[Answer | None], None]


class _Open(NamedTuple):
    """A call that has no answer yet; ``due`` is when it should have one, on the monotonic clock."""

    method: Method
    client: int
    handle: Handler
    due: float


class ClientProcess:
    """The process of a run. ``title`` names the program in sentences, ``command`` starts it.

    Answers are handled on the thread that reads them, so a handler must be quick. The numbers of clients are unique
    in the life of the process.
    """

    def __init__(self, title: str, command: Sequence[str]) -> None:
        self.title = title
        #: The program's first word, once it has started.
        self.hello = _UNKNOWN
        self.command: Final = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None
        # Bounded by the callers: no more calls than the clients have outstanding.
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended = False
        #: The rule of the protocol that it broke, in words; "" while it has kept to all.
        self.broken = ""
        self._numbers = itertools.count(1)
        self._made = 0
        self._clients = itertools.count()
        self._open: dict[int, _Open] = {}
        self._listeners: dict[int, Callable[[Answer], None]] = {}
        self._events = 0
        self._first_line = ""
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._threads: list[threading.Thread] = []
        #: True if it did not end with its input.
        self.was_killed = False

    def start(self, limit_s: float = START_LIMIT_S) -> None:
        """Start the program and wait for its first word.

        Raises:
            HostError: it did not start; the text has its last words.
        """
        began: Future[ProgramHello | None] = Future()
        try:
            process = subprocess.Popen(  # noqa: S603
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is the harness's alone
            )
        except OSError as error:
            raise HostError(f"{self.title} does not start: {error}") from error
        self._process = process
        self._begin("calls", lambda: self._write_calls(process))
        self._begin("answers", lambda: self._read_answers(process, began))
        self._begin("log", lambda: self._log_lines(process))
        silent = ""
        try:
            hello = began.result(limit_s)
        except TimeoutError:
            hello, silent = None, f"no answer within {limit_s:.0f} s"
            _kill(process)
        if hello is None:
            self._process = None
            self._stop(process)
            said = [self.broken or silent, self._last_words()]
            why = "; ".join(filter(None, said)) or f"it ended with exit status {process.returncode}"
            raise HostError(f"{self.title} does not start: {why}")
        self.hello = hello

    def new_client(self) -> int:
        """The number of the next client."""
        return next(self._clients)

    def call(self, call: ProgramCall, limit_s: float, on_event: Callable[[Answer], None] | None = None) -> Answer:
        """Do a call and wait for its end; ``on_event`` gets its events, also those after its end.

        Raises: as :meth:`ended`.
        """
        return self.ended(self.begin(call, limit_s, on_event), limit_s)

    def begin(
        self, call: ProgramCall, limit_s: float, on_event: Callable[[Answer], None] | None = None
    ) -> Future[Answer | None]:
        """Begin a call; :meth:`ended` waits for its end."""
        answer: Future[Answer | None] = Future()
        self.post(call, answer.set_result, limit_s, on_event)
        return answer

    def ended(self, call: Future[Answer | None], limit_s: float) -> Answer:
        """Wait for the end of a call; one that did not end in time may be waited for again.

        Raises:
            ClientError: the library told an error.
            TimeoutError: the call did not end in time.
            OSError: the program has ended.
        """
        answer = call.result(limit_s)
        if answer is None:
            raise BrokenPipeError(self._lost)
        if answer.end is not End.OK:
            raise error_in(answer)
        return answer

    def post(
        self,
        call: ProgramCall,
        handle: Handler | None,
        limit_s: float,
        on_event: Callable[[Answer], None] | None = None,
    ) -> None:
        """Begin a call; ``handle`` gets the answer, or None if the program ends before.

        A call without ``handle`` has no answer.

        Raises:
            OSError: the program has ended, and the call has had no effect.
        """
        if self._ended or self._process is None:
            raise BrokenPipeError(self._lost)
        call.call = self._made = number = next(self._numbers)
        if on_event is not None:
            self._listeners[number] = on_event
        if handle is not None:
            self._open[number] = _Open(call.method, call.client, handle, time.monotonic() + limit_s)
        self._lines.put(line_of(call))

    def end(self) -> None:
        """End the program and its threads.

        Raises:
            HostError: it had ended by itself or did not keep to the protocol, so what the run saw of its clients
                proves nothing.
        """
        process, self._process = self._process, None
        if process is None:
            return
        by_itself, overdue = self._ended, self._overdue()
        self._stop(process)
        problem = self._told(self.broken or f"ended by itself with exit status {process.returncode}")
        if not by_itself and not self.broken:
            problem = self._told(overdue) if overdue else ""
        if problem:
            raise HostError(f"{self.title} {problem}; logs/clients.log of the run may say more")

    def end_input(self) -> None:
        """End the program's standard input and see it end."""
        process, self._process = self._process, None
        if process is not None:
            self._stop(process)

    def wake_up(self, client: int) -> None:
        """Have a consumer's call that waits come back now; this call has no answer."""
        with suppress(OSError):
            self.post(ProgramCall(method=Method.WAKE_UP, client=client), None, 0)

    def kill(self) -> None:
        """End the program, whatever it has done."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            self._stop(process)

    @property
    def problem(self) -> str:
        """The reason why a program that was started runs no more, with its last words; "" while it runs."""
        process = self._process
        if not self._ended or process is None:
            return ""
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_LIMIT_S)
        self._threads[-1].join(END_LIMIT_S)  # it reads the last words
        return self._told(self.broken or f"ended by itself with exit status {process.returncode}")

    def _told(self, problem: str) -> str:
        return "; ".join(filter(None, [problem, self._last_words()]))

    @property
    def _lost(self) -> str:
        return f"{self.title} has ended; logs/clients.log may say why"

    def _overdue(self) -> str:
        """The words for calls that never got an answer, as far as that is certain."""
        late = time.monotonic() - OVERDUE_S
        never = [(number, each.method) for number, each in tuple(self._open.items()) if each.due < late]
        return f"never answered {_listed(never)}" if never else ""

    def _last_words(self) -> str:
        """The first and the last lines of standard error."""
        last = [*self._last_lines]
        whole = not last or self._first_line in last
        return " | ".join(last if whole else [self._first_line, "...", *last])

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        self._lines.put(None)
        try:
            process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.was_killed = True
            _kill(process)
            process.wait(END_LIMIT_S)
        for thread in self._threads:
            thread.join(END_LIMIT_S)
            if thread.is_alive():
                _kill(process)  # a child of the program holds the pipe
                thread.join(END_LIMIT_S)

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=f"client-program-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _write_calls(self, process: subprocess.Popen[bytes]) -> None:
        """Write calls on a thread of their own: a program that stands still must not stop the run's clock."""
        assert process.stdin is not None  # noqa: S101
        with suppress(OSError), process.stdin, open(process.stdin.fileno(), "wb", CALLS_BYTES, closefd=False) as calls:
            while (line := self._lines.get()) is not None:
                calls.write(line)
                if self._lines.empty():
                    calls.flush()

    def _read_answers(self, process: subprocess.Popen[bytes], began: Future[ProgramHello | None]) -> None:
        assert process.stdout is not None  # noqa: S101
        with suppress(OSError):
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, BUFFER_BYTES)
        # Each read hands the interpreter's lock over; in pieces of 8 KiB a poll's answer took tenths of a second.
        with process.stdout, open(process.stdout.fileno(), "rb", BUFFER_BYTES, closefd=False) as answers:
            try:
                if line := _next_line(answers):
                    began.set_result(hello_in(line))
                while line := _next_line(answers):
                    self._take(answer_in(line))
            except ProtocolError as error:
                self.broken = without_secrets(str(error))
                _kill(process)
        self._ended = True
        self._lines.put(None)
        if not began.done():
            began.set_result(None)
        for number in tuple(self._open):
            if (call := self._open.pop(number, None)) is not None:
                call.handle(None)

    def _take(self, answer: Answer) -> None:
        """Hand an answer or an event over.

        Raises:
            ProtocolError: the call has none, or another one, or lacks a key.
        """
        if answer.event is not None:
            self._take_event(answer)
            return
        call = self._open.get(answer.call)
        if call is None:
            raise ProtocolError(
                f"answers call {answer.call} twice; each call has one answer, and wake_up none"
                if 0 < answer.call <= self._made
                else f"answers call {answer.call}, which was never made"
            )
        refuse_incomplete(answer, call.method)
        del self._open[answer.call]
        call.handle(answer)
        if call.method in (Method.CLOSE, Method.CRASH):
            left = [(number, each.method) for number, each in tuple(self._open.items()) if each.client == call.client]
            if left:
                raise ProtocolError(
                    f"ended client {call.client} and left {_listed(left)} unanswered; answer the calls of a client "
                    "before the call that ends it"
                )

    def _take_event(self, event: Answer) -> None:
        listener = self._listeners.get(event.call)
        if listener is None:
            raise ProtocolError(f"tells news of call {event.call}, which is no {Method.SUBSCRIBE}")
        self._events += 1
        if self._events > EVENTS_MAX:
            raise ProtocolError(f"tells more than {EVENTS_MAX} times what its members are assigned")
        refuse_incomplete(event, Method.SUBSCRIBE)
        listener(event)

    def _log_lines(self, process: subprocess.Popen[bytes]) -> None:
        """Log what the program writes to standard error, up to a limit, and keep the first and the last lines."""
        assert process.stderr is not None  # noqa: S101
        with process.stderr as lines:
            for number in itertools.count():
                if not (line := lines.readline(_LOGGED_BYTES)):
                    break
                words = without_secrets(line.decode(errors="replace").rstrip())
                self._first_line = self._first_line or words[:_SHOWN_MAX]
                self._last_lines.append(words[:_SHOWN_MAX])
                if number < LOGGED_MAX:
                    log.warning("%s", words)
                elif number == LOGGED_MAX:
                    log.warning("%s wrote %d lines to standard error; further ones are left out", self.title, number)


def error_in(answer: Answer) -> ClientError:
    """The error in an answer that has one."""
    return ClientError(answer.error or "", answer.words or "", answer.told_class or ToldClass.FAILED)


def _next_line(answers: IO[bytes]) -> bytes:
    """The next whole line; empty where the program ended, maybe within one.

    Raises:
        ProtocolError: the line has no end.
    """
    line = answers.readline(LINE_MAX)
    if len(line) == LINE_MAX:
        raise ProtocolError(f"writes a line of more than {LINE_MAX // 2**20} MiB; an answer is one line")
    return line if line.endswith(b"\n") else b""


def _listed(calls: Sequence[tuple[int, Method]]) -> str:
    """Some calls in words."""
    number, method = calls[0]
    return f"call {number} ({method})" if len(calls) == 1 else f"{len(calls)} calls, the first {number} ({method})"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and those that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
