"""Where the client libraries log to during a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: Libraries that would tell of every injected fault on standard error.
_LOGGERS: Final = ("kafka", "harness.clients", "kazoo", "paramiko")


@contextmanager
def logs_diverted(path: Path) -> Iterator[None]:
    """What the client libraries log goes to a file of the run: under faults it is much, and no news."""
    path.parent.mkdir(exist_ok=True)
    handler = logging.FileHandler(path, delay=True)
    handler.setLevel(logging.INFO)  # what kafka-python tells below it contains passwords
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s %(message)s"))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    propagated = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, propagated, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate
        handler.close()
