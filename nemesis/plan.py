"""The budget of a run's faults: what may be broken, and for how long."""

from __future__ import annotations

import msgspec


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faults of one run.

    ``families`` name the kinds from which a schedule is drawn (:data:`nemesis.scenarios.FAMILIES`). At least ``count``
    faults are drawn, in whole stories, as far as they fit in the break phase; each lasts between ``fault_ms_min`` and
    ``fault_ms_max``, or as long as its story needs under the settings. Between groups of overlapping faults, and before
    the first, everything is healed for at least ``healed_ms_min``. ``dead_brokers_max`` is the budget: how many brokers
    may be dead or frozen at one time.

    ``stories`` choose instead of chance: each is performed once, in this order, and again round and round until there
    are ``count`` faults, as far as time and budget allow. A word of it is a number (``"S09"``) or a family and a name
    (``"kill/leader-ahead"``); see :func:`nemesis.scenarios.stories_named`.
    """

    families: tuple[str, ...] = ("kill",)
    stories: tuple[str, ...] = ()
    count: int = 4
    fault_ms_min: int = 500
    fault_ms_max: int = 3_000
    healed_ms_min: int = 1_000
    dead_brokers_max: int = 2
