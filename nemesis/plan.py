"""The budget of a run's faults: what may be broken, and for how long."""

from __future__ import annotations

from typing import Final

import msgspec

#: Silence after three exercised faults bounds the share of faults that lose a write by 63 % (1 - 0.05^(1/3)), after two
#: by 78 %. More is better and costs time; three is what a run of ten seconds on real processes has room for.
EXERCISED_MIN: Final = 3


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faults of one run.

    ``families`` name the kinds from which a schedule is drawn (:data:`nemesis.scenarios.FAMILIES`). At least ``count``
    faults are drawn, in whole scenarios, as far as they fit in the break phase; each lasts between ``fault_ms_min`` and
    ``fault_ms_max``, or as long as its scenario needs under the settings. Between groups of overlapping faults, and
    before the first, everything is healed for at least ``healed_ms_min``. ``dead_brokers_max`` is the budget: the most
    brokers that may be dead or frozen at one time.

    ``stories`` names scenarios that are performed instead of drawn ones: each once, in this order, and again round and
    round until there are ``count`` faults, as far as time and budget allow. A word of it is a number (``"S09"``) or a
    family and a name (``"kill/leader-ahead"``); see :func:`nemesis.scenarios.scenarios_named`.

    Without a loss a cell is ``held`` if at least ``exercised_min`` scenarios of each of its families met writes, over
    all its runs; a run alone needs as many, or all that took effect where there were fewer, one at least.
    """

    families: tuple[str, ...] = ("kill",)
    stories: tuple[str, ...] = ()
    count: int = 4
    fault_ms_min: int = 500
    fault_ms_max: int = 3_000
    healed_ms_min: int = 1_000
    dead_brokers_max: int = 2
    exercised_min: int = EXERCISED_MIN
