"""Standard output as the shell gave it: closed, on a full disk, or in an encoding that lacks some of our signs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from harness.ground.errors import OutputError

CLOSED: Final = "standard output is closed: what this command finds is in files and in its exit code only"


def see_to_streams() -> bool:
    """Make standard streams that can be written to; False where standard output was closed.

    A number that a closed stream leaves free would be that of the next file that is opened, and whatever a child
    prints would go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _to_nowhere(number)
    closed = sys.stdout is None
    if closed:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding, lines = sys.stdout.encoding, sys.stdout.line_buffering
        sys.stdout = Output(sys.stdout.detach(), encoding, errors="backslashreplace", line_buffering=lines)
    if isinstance(sys.stderr, io.TextIOWrapper):
        encoding = sys.stderr.encoding
        sys.stderr = Notes(sys.stderr.detach(), encoding, errors="backslashreplace", line_buffering=True)
    return not closed


def drop_output() -> None:
    """Forget what cannot be written to standard output: Python would try it again, and complain, when it ends."""
    _to_nowhere(sys.stdout.fileno())


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere == number:
        os.set_inheritable(number, True)
        return
    os.dup2(nowhere, number)
    os.close(nowhere)


@contextlib.contextmanager
def writing_output() -> Iterator[None]:
    """Tell errors of standard output, which the block writes to, from those of other files.

    A reader that has read enough and went away, such as ``head``, is no error: the block ends, what follows goes
    nowhere, and the command ends with the exit code of what it found.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        raise OutputError.of(error) from error


class Notes(io.TextIOWrapper):
    """Standard error, where progress goes: no work ends because its reader went away, or its disk is full."""

    @override
    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            _to_nowhere(sys.stderr.fileno())
            return len(text)

    @override
    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            _to_nowhere(sys.stderr.fileno())


class Output(io.TextIOWrapper):
    """Standard output whose errors are not taken for those of other files; signs that it lacks are escaped."""

    def write(self, text: str, /) -> int:
        """Write ``text`` to standard output.

        Raises:
            OutputError: it cannot be written.
        """
        with writing_output():
            super().write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is held back.

        Raises:
            OutputError: it cannot be written.
        """
        with writing_output():
            super().flush()
