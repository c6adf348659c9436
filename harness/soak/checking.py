"""Judging while the soak goes on: one batch of histories at a time, in a thread, with one Spark session that stays."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.campaign import Judged, judge_all
from harness.progress import Progress

Judge = Callable[[Sequence[Path]], list[Judged]]


def judge_here(directories: Sequence[Path]) -> list[Judged]:
    """The verdicts on the runs in ``directories``, in their order, by the process's Spark session.

    Raises:
        HarnessError: Spark failed.
    """
    return judge_all(directories, Progress())


class Checking:
    """At most one batch, judged by ``judge`` in a thread that does not keep the process alive."""

    def __init__(self, judge: Judge = judge_here) -> None:
        self._judge = judge
        self._answers: queue.Queue[list[Judged] | Exception] = queue.Queue()
        self.busy = False

    def begin(self, directories: Sequence[Path]) -> None:
        """Judge the runs in ``directories``."""
        self.busy = True
        threading.Thread(target=self._work, args=(directories,), daemon=True).start()

    def _work(self, directories: Sequence[Path]) -> None:
        try:
            self._answers.put(self._judge(directories))
        except Exception as error:  # raised where the answer is asked for
            self._answers.put(error)

    def answer(self, patience_s: float = 0.0) -> list[Judged] | None:
        """The verdicts on the batch, in its order; None while it is being judged, or nothing is.

        Raises:
            HarnessError: the checking failed; nothing of the batch was judged.
        """
        try:
            found = self._answers.get(block=patience_s > 0, timeout=patience_s or None)
        except queue.Empty:
            return None
        self.busy = False
        if isinstance(found, Exception):
            raise found
        return found
