"""Recovery: what fresh clients could do with a log after everything was healed."""

from __future__ import annotations

import msgspec


class Recovery(msgspec.Struct, kw_only=True):
    """Whether fresh clients could write and read every log partition after healing.

    ``tried`` is false in histories of older versions, and of runs that ended before it: nothing is claimed of them.
    ``unwritten`` and ``unread`` say by log partition why a fresh client could not, ``lacking`` what the cluster still
    lacked at the limit; ``retired`` counts the producers that were given up and replaced.
    """

    tried: bool = False
    unwritten: dict[str, str] = {}
    unread: dict[str, str] = {}
    lacking: dict[str, str] = {}
    retired: int = 0
