"""The budget of a run's faults: what may be broken, and for how long."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

#: A schedule never has more faults than this, whatever the plan's numbers say: a receipt each must fit a report.
FAULTS_MAX: Final = 10_000
#: Silence after three exercised faults bounds the share of faults that lose a write by 63 % (1 - 0.05^(1/3)), after two
#: by 78 %. More is better and costs time; three is what a run of ten seconds on real processes has room for.
EXERCISED_MIN: Final = 3
#: Silence about 59 writes bounds the share of such writes that are lost by 5 % (1 - 0.05^(1/59)).
AT_STAKE_MIN: Final = 59


class Drawing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers by which chance draws the faults of a run, where no schedule gives them."""

    families: Annotated[tuple[str, ...], Meta(extra={"in_plans": False})] = ("kill",)
    """The families from which a schedule is drawn (:data:`nemesis.scenarios.FAMILIES`)."""
    scenarios: tuple[str, ...] = msgspec.field(default=(), name="stories")  # the name in files of runs
    """Scenarios that are performed in place of drawn ones: `["S09", "kill/leader-ahead"]`, by number or by family and
    name. Each is performed once, in this order, and again round and round until there are `count` faults, as far as
    time and budget allow."""
    count: Annotated[
        int, Meta(ge=0, le=FAULTS_MAX, description="each leaves a receipt, and the report shows them all")
    ] = 4
    """The least number of faults that are drawn, in whole scenarios, as far as they fit in the break phase."""
    fault_ms_min: int = 500
    """The least time that each fault lasts."""
    fault_ms_max: Annotated[int, Meta(ge=1)] = 3_000
    """The most time that each lasts, unless its scenario needs longer under the settings."""
    healed_ms_min: int = 1_000
    """Everything is healed for this long between groups of overlapping faults, and before the first."""


class FaultPlan(Drawing, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faults of one run."""

    dead_brokers_max: Annotated[int, Meta(ge=1)] = 2
    """The budget: the most brokers that may be dead or frozen at one time."""
    exercised_min: Annotated[int, Meta(ge=1, le=1_000_000_000, description="no campaign has more faults")] = (
        EXERCISED_MIN
    )
    """Without a loss a cell is `held` if this number of scenarios of each of its families met writes, over all its
    runs. A run alone needs as many, or all that took effect where there were fewer, one at least. After 3 such faults
    without a loss, at most 63 % of such faults lose a write, at 95 % confidence; after 10 at most 26 %, after 59 at
    most 5 %."""
    at_stake_min: Annotated[int, Meta(ge=1, le=1_000_000_000, description="no campaign writes more")] = AT_STAKE_MIN
    """Without a loss a cell is `held` if this number of writes was at stake in the exercised faults of each of its
    families: in flight, fresh where the fault could take them, or acknowledged or refused while it lasted. After
    59 such writes without a loss, at most 5 % of such writes are lost, at 95 % confidence."""
