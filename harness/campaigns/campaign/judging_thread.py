"""Judging while the soak goes on: one batch of histories at a time, in a thread, with one Spark session that stays."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from checkers import end_session, spark_context
from harness.campaigns.campaign.judged_histories import JudgedHistory, judge_all
from harness.ground.errors import HarnessError
from harness.ground.machine.translated_errors import translated_errors
from harness.ground.progress import Progress

Judge = Callable[[Sequence[Path]], list[JudgedHistory]]

#: Seconds for one batch; a Java that is frozen never answers.
BATCH_LIMIT_S: Final = 900.0


def judge_here(directories: Sequence[Path]) -> list[JudgedHistory]:
    """The verdicts on the runs in ``directories``, in their order, by the process's Spark session.

    Raises:
        HarnessError: Spark failed.
    """
    return judge_all(directories, Progress())


def begin_session(progress: Progress, master: str | None = None) -> None:
    """Start Spark before work of hours begins, and know at once where it cannot; see :func:`checkers.spark_context`.

    Raises:
        JavaError: there is no Java for it.
        HarnessError: it does not start.
    """
    with progress.phase("starting PySpark", None), translated_errors():
        spark_context(master)


class Checking:
    """At most one batch, judged by ``judge`` in a thread that does not keep the process alive.

    Where Spark fails (its Java died, or was killed), it is started again by ``renew``, and the batch judged once more.
    """

    def __init__(self, judge: Judge = judge_here, renew: Callable[[], None] = end_session) -> None:
        self._judge, self._renew = judge, renew
        self._answers: queue.Queue[list[JudgedHistory] | Exception] = queue.Queue()
        self._deadline = 0.0
        self.busy = False

    def begin(self, directories: Sequence[Path]) -> None:
        """Judge the runs in ``directories``."""
        self.busy, self._deadline = True, time.monotonic() + BATCH_LIMIT_S
        threading.Thread(target=self._work, args=(directories,), daemon=True).start()

    def _work(self, directories: Sequence[Path]) -> None:
        try:
            self._answers.put(self._judged(directories))
        except Exception as error:  # raised where the answer is asked for
            self._answers.put(error)

    def _judged(self, directories: Sequence[Path]) -> list[JudgedHistory]:
        try:
            return self._judge(directories)
        except HarnessError:
            self._renew()
            return self._judge(directories)

    def answer(self, patience_s: float = 0.0) -> list[JudgedHistory] | None:
        """The verdicts on the batch, in its order; None while it is being judged, or nothing is.

        Raises:
            HarnessError: the checking failed; nothing of the batch was judged.
        """
        try:
            answer = self._answers.get(block=patience_s > 0, timeout=patience_s or None)
        except queue.Empty:
            if self.busy and time.monotonic() > self._deadline:
                raise HarnessError(
                    f"the checking did not answer within {BATCH_LIMIT_S:.0f} s; resume the soak"
                ) from None
            return None
        self.busy = False
        if isinstance(answer, Exception):
            raise answer
        return answer
