"""The faults that runs put to the test, and the evidence that silence about losses lacks.

A lost write is a proof, silence is only evidence. It is evidence where every run was judged and recovered, and where
enough faults of each family were exercised. The plan says how many are enough, by ``exercised_min``. A bound follows
from that number: if each fault lost a write with a chance of p or more, n exercised faults would all be silent with a
chance of (1-p)^n at most, which is 5 % for p = 1 - 0.05^(1/n). A fault that met one write is a weaker trial than one
that met a thousand, so the writes *at stake* are counted beside the faults, bounded in the same way, and must be
``at_stake_min`` in each family.

The faults of one group are one scenario, and count as one fault: three brokers that lose their power at once are one.
It is exercised if a fault of the kind that its family is about (:func:`nemesis.scenarios.is_strike`) took
effect and met writes (:mod:`checkers.measures.writes_met`). A cut of links that prepares for a kill does not count.
A scripted story brings its own writes, each at its moment: it is exercised if it took effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from checkers.measures.writes_met import FaultExercise
from checkers.verdicts.receipts import took_flushed
from checkers.verdicts.verdict import Verdict
from checkers.words import counted
from nemesis.plan import EXERCISED_MIN
from nemesis.receipts import Receipt
from nemesis.scenarios import SCRIPTED, is_strike
from workloads import ACKS_ALL, Settings

#: The reason why a run of an older version cannot say what it put to the test.
OLDER: Final = "it is not known what was put to the test: judged or recorded by an older version"
_RAISE_WRITES: Final = "raise writes_per_second, or runs"
#: A producer that waits for the end of each transaction writes no faster by the number.
_RAISE_PRODUCERS: Final = "raise producers, or runs"
_RAISE_FAULTS: Final = "raise count and duration_ms, or runs"
#: A script says its faults and writes itself.
_RAISE_RUNS: Final = "raise runs"
_NO_FAULT: Final = "no fault took effect; see skipped receipts, and raise count or duration_ms"


class FamilyExercised(msgspec.Struct, frozen=True):
    """Numbers of faults of one family that took effect, and of those that met writes; a scenario is one fault.

    ``why_not`` is why faults that the family is about cannot be done in its world, "" if no fault was skipped for that.
    ``at_stake`` counts the exercised faults by their number of writes at stake, in a scenario that of its fault with
    most. Scripted stories and older versions do not say it.
    """

    took_effect: int = 0
    exercised: int = 0
    why_not: str = ""
    at_stake: dict[int, int] = {}

    def __add__(self, other: FamilyExercised) -> FamilyExercised:
        return FamilyExercised(
            self.took_effect + other.took_effect,
            self.exercised + other.exercised,
            self.why_not or other.why_not,
            dict(sorted((Counter(self.at_stake) + Counter(other.at_stake)).items())),
        )

    @property
    def writes_at_stake(self) -> int | None:
        """All writes at stake; None if not every exercised fault says how many."""
        is_known = sum(self.at_stake.values()) == self.exercised
        return sum(writes * faults for writes, faults in self.at_stake.items()) if is_known else None

    @property
    def writes_a_fault(self) -> tuple[int, int] | None:
        """The least and the median number of writes at stake in one exercised fault; None if that is not known."""
        each = sorted(Counter(self.at_stake).elements())
        return (each[0], each[(len(each) - 1) // 2]) if each and len(each) == self.exercised else None


class RunsExercised(msgspec.Struct, frozen=True, kw_only=True):
    """The faults that one run put to the test, or all runs of a cell.

    ``judged`` of ``runs`` could be judged; ``telling`` (``known`` in files) counts those that say what they put to the
    test, ``recovered`` those in which fresh clients wrote and read every log partition after healing.
    ``rebalanced`` counts rebalances of consumer groups over commits that were due; None where no group read.
    ``unfinished`` counts the log partitions that a fresh member did not read to their end after healing;
    ``unassigned`` those of them that no member was assigned then.
    ``transactions`` are those that ended; ``aborted_passed`` are writes of aborted ones that final readers passed,
    ``aborted_seen`` those that readers of uncommitted records read. ``unread_levels`` counts the log partitions that
    were read to their end at one isolation level and not at the other; None where no reader tells its level.
    ``effects`` are writes that members of a group made of records; ``offsets_aborted`` are offsets that a group had
    taken for a transaction that was aborted, ``offsets_refused`` those that it refused.
    """

    runs: int = 1
    judged: int = 0
    telling: int = msgspec.field(default=0, name="known")
    recovered: int = 0
    acknowledged: int = 0
    rebalanced: int | None = None
    unfinished: int = 0
    unassigned: int = 0
    transactions: int = 0
    aborted_passed: int = 0
    aborted_seen: int = 0
    unread_levels: int | None = None
    effects: int = 0
    offsets_aborted: int = 0
    offsets_refused: int = 0
    families: dict[str, FamilyExercised] = {}

    def __add__(self, other: RunsExercised) -> RunsExercised:
        names = dict.fromkeys((*self.families, *other.families))
        return RunsExercised(
            runs=self.runs + other.runs,
            judged=self.judged + other.judged,
            telling=self.telling + other.telling,
            recovered=self.recovered + other.recovered,
            acknowledged=self.acknowledged + other.acknowledged,
            rebalanced=_sum(self.rebalanced, other.rebalanced),
            unfinished=self.unfinished + other.unfinished,
            unassigned=self.unassigned + other.unassigned,
            transactions=self.transactions + other.transactions,
            aborted_passed=self.aborted_passed + other.aborted_passed,
            aborted_seen=self.aborted_seen + other.aborted_seen,
            unread_levels=_sum(self.unread_levels, other.unread_levels),
            effects=self.effects + other.effects,
            offsets_aborted=self.offsets_aborted + other.offsets_aborted,
            offsets_refused=self.offsets_refused + other.offsets_refused,
            families={
                name: self.families.get(name, FamilyExercised()) + other.families.get(name, FamilyExercised())
                for name in names
            },
        )

    @property
    def is_known(self) -> bool:
        """True if every judged run says what it put to the test."""
        return self.telling == self.judged

    @property
    def _more_writes(self) -> str:
        """The advice where more writes are needed."""
        return _RAISE_PRODUCERS if self.transactions else _RAISE_WRITES

    def of(self, families: Iterable[str]) -> dict[str, FamilyExercised]:
        """The counts of ``families``, also of one without effect."""
        return {name: self.families.get(name, FamilyExercised()) for name in families}

    def bound(self, families: Iterable[str]) -> float:
        """The largest share of faults of any of ``families`` that may lose a write, at 95 % confidence, if none did."""
        return silent_share(min((family.exercised for family in self.of(families).values()), default=0))

    def bound_writes(self, families: Iterable[str]) -> float | None:
        """The largest share of the writes at stake that faults of any of ``families`` may lose, as :meth:`bound`.

        Writes of one fault are not independent. None if their number is not known.
        """
        of_families = [family.writes_at_stake for family in self.of(families).values()]
        told = [writes for writes in of_families if writes is not None]
        return silent_share(min(told)) if told and len(told) == len(of_families) else None

    def lacks(
        self, families: Iterable[str], exercised_min: int = EXERCISED_MIN, at_stake_min: int = 0, why_unjudged: str = ""
    ) -> str:
        """Say what silence lacks to be evidence about ``families``, and how to change it; "" if it lacks nothing.

        ``why_unjudged`` is why runs could not be judged, if that is known.
        """
        lacks = [
            _family_lacks(name, family, exercised_min, self._more_writes, at_stake_min)
            for name, family in self.of(families).items()
        ]
        if self.judged < self.runs:
            why = f": {why_unjudged}" if why_unjudged else ""
            lacks.insert(0, f"{_of(self.runs - self.judged, self.runs)} could not be judged{why}")
        if self.recovered < self.judged:
            away = self.judged - self.recovered
            lacks.insert(0, f"{_of(away, self.runs)} had not recovered within recovery_limit_ms")
        if read := self.unfinished - self.unassigned:
            which = counted(read, "log partition")
            lacks.insert(0, f"the group was not read to the end of {which}; raise drain_limit_ms")
        if self.unassigned:
            which = counted(self.unassigned, "log partition")
            why = "its members could not join: look at their errors, and at the leaders of __consumer_offsets"
            lacks.insert(0, f"no member of the group was assigned {which} after healing, so {why}")
        if self.rebalanced == 0:
            lacks.insert(0, "no rebalance struck while a commit was due; lower member_change_ms, or raise duration_ms")
        if not self.acknowledged:
            lacks.insert(0, "no write was acknowledged")
        if self.transactions and not self.aborted_passed:
            lacks.append("no reader passed a write of an aborted transaction; raise aborts_percent or duration_ms")
        elif self.transactions and self.unread_levels is not None and not self.aborted_seen:
            lacks.append(
                "readers of uncommitted records saw no write of an aborted transaction, as if they had the other level"
            )
        if self.unread_levels:
            which = counted(self.unread_levels, "log partition")
            lacks.insert(0, f"{which} read to the end at one isolation level only; raise drain_limit_ms")
        if self.effects and not self.offsets_aborted:
            lacks.append("no transaction was aborted after a group had taken its offsets; raise aborts_percent")
        return "; ".join(lack for lack in lacks if lack)

    def run_lacks(self, families: Iterable[str] = (), exercised_min: int = EXERCISED_MIN) -> str:
        """Say what a run alone lacks. Of each family it needs ``exercised_min`` exercised faults, or all that took
        effect.

        One fault at least is needed. Without ``families`` they are those that took effect.
        """
        own = self.of(tuple(families) or self.families)
        if not any(family.took_effect for family in own.values()):
            impossible = (f"{name}: {_impossible(family)}" for name, family in own.items() if family.why_not)
            return self.lacks(()) or next(impossible, _NO_FAULT)
        lacks = (
            _family_lacks(name, family, min(exercised_min, max(family.took_effect, 1)), self._more_writes)
            for name, family in own.items()
        )
        return "; ".join(lack for lack in (self.lacks(()), *lacks) if lack)


def silent_share(trials: int) -> float:
    """The largest chance of a loss a trial with which ``trials`` of them are all silent in 5 % of cases; 1 for none."""
    return 1 - 0.05 ** (1 / trials) if trials else 1.0


def exercised_by(verdict: Verdict, receipts: Sequence[Receipt], settings: Settings, *, judged: bool) -> RunsExercised:
    """Count the faults that one run put to the test, from the verdict on it; ``receipts`` are its own."""
    exercises, recovery = verdict.fault_exercise, verdict.recovery
    is_known = judged and exercises is not None and recovery.tried
    met = {fault.sequence: fault for fault in exercises or ()}
    scenarios: dict[tuple[str, int], int] = {}
    for receipt in receipts:
        if receipt.took_effect and is_strike(receipt.family, receipt.fault) and not _was_less(receipt, settings):
            scenario = receipt.family, receipt.group
            at_stake = _at_stake(met.get(receipt.sequence), receipt, settings) if judged else 0
            scenarios[scenario] = max(scenarios.get(scenario, 0), at_stake)
    by_family: dict[str, list[int]] = {}
    for (family, _), at_stake in scenarios.items():
        by_family.setdefault(family, []).append(at_stake)
    skipped = (receipt for receipt in receipts if receipt.unsupported and is_strike(receipt.family, receipt.fault))
    why_not = {receipt.family: receipt.reason for receipt in skipped}
    return RunsExercised(
        judged=int(judged),
        telling=int(is_known),
        recovered=int(is_known and not (recovery.unwritten or recovery.unread or recovery.lacking)),
        acknowledged=verdict.exercise.acknowledged if judged else 0,
        rebalanced=verdict.groups.rebalanced_over_commits,
        unfinished=verdict.groups.unfinished or 0,
        unassigned=verdict.groups.unassigned or 0,
        transactions=verdict.transactions.all if judged else 0,
        aborted_passed=verdict.transactions.aborted_passed if judged else 0,
        aborted_seen=verdict.transactions.aborted_seen if judged else 0,
        unread_levels=verdict.transactions.unread_levels if judged else None,
        effects=verdict.transactions.effects if judged else 0,
        offsets_aborted=verdict.transactions.offsets_aborted if judged else 0,
        offsets_refused=verdict.transactions.offsets_refused if judged else 0,
        families={
            name: _family_exercised(name, by_family.get(name, ()), why_not.get(name, ""), judged=judged)
            for name in dict.fromkeys((*by_family, *why_not))
        },
    )


def _family_exercised(name: str, at_stake: Sequence[int], why_not: str, *, judged: bool) -> FamilyExercised:
    """A family from the writes at stake in each of its scenarios that took effect."""
    if SCRIPTED.fullmatch(name):
        return FamilyExercised(len(at_stake), len(at_stake) if judged else 0, why_not)
    met = Counter(filter(None, at_stake))
    return FamilyExercised(len(at_stake), met.total(), why_not, dict(sorted(met.items())))


def _at_stake(met: FaultExercise | None, receipt: Receipt, settings: Settings) -> int:
    """Count the writes at risk when it struck, and those acknowledged or refused while it lasted.

    With acks=all every in-sync replica has the writes acknowledged before. At risk are those that the leader alone had,
    and, where the fault takes page caches, those that may be in these only. A broker that was away for long is put to
    the test by records that were written meanwhile and cleaned away.
    """
    if met is None:
        return 0
    if receipt.facts.waits_for_cleaner:
        return met.cleaned
    takes_copies = receipt.facts.destroys_copy and not _spared(receipt, settings)
    recent = met.recent if takes_copies or settings.acks != ACKS_ALL else met.recent_alone
    return met.in_flight + recent + met.acknowledged + met.refused


def _spared(receipt: Receipt, settings: Settings) -> bool:
    return receipt.facts.spares_flushed and settings.flush_messages == 1 and not took_flushed(receipt)


def _was_less(receipt: Receipt, settings: Settings) -> bool:
    """Tell whether it came to less than its family is about, for another reason than the settings."""
    return bool(receipt.degraded_to) and not _spared(receipt, settings)


def _family_lacks(name: str, family: FamilyExercised, enough: int, more_writes: str, at_stake_min: int = 0) -> str:
    scripted = SCRIPTED.fullmatch(name)
    if family.exercised >= enough:
        writes = family.writes_at_stake
        few = not scripted and writes is not None and writes < at_stake_min
        return f"{name}: {writes:,} of at least {at_stake_min:,} writes were at stake; {more_writes}" if few else ""
    wanted = f"{name}: {family.exercised} of at least {enough} faults met writes"
    if not family.took_effect and family.why_not:
        return f"{wanted}, {_impossible(family)}"
    if family.took_effect < enough:
        others = f", others cannot be done here ({family.why_not})" if family.why_not else ""
        return f"{wanted}, {family.took_effect} took effect{others}; {_RAISE_RUNS if scripted else _RAISE_FAULTS}"
    return f"{wanted}, of {family.took_effect} that took effect; {_RAISE_RUNS if scripted else more_writes}"


def _impossible(family: FamilyExercised) -> str:
    """The lack that no number of runs mends."""
    return f"none can be done here: {family.why_not}"


def _sum(count: int | None, other: int | None) -> int | None:
    return count if other is None else other if count is None else count + other


def _of(count: int, total: int) -> str:
    return "the run" if total == 1 else f"{count:,} of {total:,} runs"
