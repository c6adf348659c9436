"""Sends a signal to a process after the kernel told it that its child has ended, and before it notes that.

On a busy machine this happens by chance; ptrace brings it about each time.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

_DETACH: Final = 17
_SYSCALL: Final = 24
_SEIZE: Final = 0x4206
_INTERRUPT: Final = 0x4207
_GET_SYSCALL_INFO: Final = 0x420E
#: Stops at system calls are marked by this bit beside SIGTRAP.
_TRACESYSGOOD: Final = 1
_SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
_ANY_THREAD: Final = 0x40000000
_EXIT: Final = 2


class _Answer(ctypes.Structure):
    """The kernel's word on the system call that ends (struct ptrace_syscall_info)."""

    _fields_ = (
        ("op", ctypes.c_uint8),
        ("arch", ctypes.c_uint32),
        ("pointers", ctypes.c_uint64 * 2),
        ("value", ctypes.c_int64),
        ("rest", ctypes.c_uint64 * 8),
    )


def signal_as_child_is_reaped(parent: int, child: int, number: signal.Signals, end_child: Callable[[], object]) -> None:
    """End ``child``, and send ``number`` to ``parent`` when a system call of the parent answers with that child."""
    _ptrace(_SEIZE, parent, data=_TRACESYSGOOD)
    _ptrace(_INTERRUPT, parent)
    ending = False
    while True:
        _, status = os.waitpid(parent, _ANY_THREAD)
        if not os.WIFSTOPPED(status):
            raise AssertionError(f"process {parent} ended before it learned of the end of {child}")
        stop, pass_on = os.WSTOPSIG(status), 0
        if stop == _SYSCALL_STOP:
            answer = _Answer()
            _ptrace(_GET_SYSCALL_INFO, parent, ctypes.sizeof(answer), ctypes.addressof(answer))
            if answer.op == _EXIT and answer.value == child:
                os.kill(parent, number)
                _ptrace(_DETACH, parent)
                return
        elif status >> 16 == 0:  # a signal of its own, which it shall have
            pass_on = stop
        _ptrace(_SYSCALL, parent, data=pass_on)
        if not ending:
            ending = True
            end_child()


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, pid, address, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of process {pid}")
