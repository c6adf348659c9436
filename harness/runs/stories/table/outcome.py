"""The outcome of a performance, as the checkers found it: it is compared with the story's file, now or later."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from checkers import NEVER, InconsistentOffset, LostWrite, SkippedRecord, Verdict
from harness.runs.stories.script.performer import Performance
from harness.runs.stories.stage.trace import ACKNOWLEDGED, record_name
from harness.runs.stories.table.story import OTHERS, Expected, Sign, Story, following


class StoryOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The records that were lost, acknowledged, or skipped by the group, and what else was seen.

    ``others`` are anomalies that no sign is about, None in a trace that was kept before they were looked at.
    ``problems`` are sentences: what a file cannot expect. ``lacking`` says what did not come back at the end.
    """

    lost: tuple[str, ...] = ()
    acknowledged: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    signs: tuple[Sign, ...] = ()
    others: tuple[str, ...] | None = None
    problems: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    def disagreements(self, story: Story, column: str) -> tuple[str, ...]:
        """Sentences: what is not as the story's file, as it is now, expects it in this column."""
        if not story.expects or column not in story.columns:
            return self.problems
        lacking = (f"the log partition did not come back: {lack}" for lack in self.lacking)
        return (*self.problems, *self._unlike(story.expected(column)), *lacking)

    def _unlike(self, expected: Expected) -> Iterator[str]:
        follows = following({*self.lost} | expected.lost, {*self.signs} | expected.signs)
        others = expected.others if self.others is None else self.others
        for what, seen, wanted in (
            ("lost", {*self.lost}, expected.lost),
            ("acknowledged", {*self.acknowledged}, expected.acknowledged),
            ("skipped", {*self.skipped}, expected.skipped),
            ("seen", {*self.signs}, expected.signs),
            ("seen", {*others} - follows, expected.others - follows),
        ):
            if more := sorted(seen - wanted):
                yield f"{what}, and not expected to be: {', '.join(more)}"
            if less := sorted(wanted - seen):
                yield f"expected to be {what}, and not: {', '.join(less)}"


def outcome_of(performance: Performance, verdict: Verdict) -> StoryOutcome:
    """The outcome that a performance and its verdict make."""
    trace, report = performance.trace, performance.report
    names = {record.value: name for name, record in trace.records.items()}
    signs = frozenset(_signs(performance, verdict))
    return StoryOutcome(
        lost=tuple(sorted({names[finding.value] for finding in verdict.findings(LostWrite)})),
        acknowledged=tuple(sorted(name for name, record in trace.records.items() if record.outcome == ACKNOWLEDGED)),
        skipped=tuple(sorted({record_name(names, finding.value) for finding in verdict.findings(SkippedRecord)})),
        signs=tuple(sign for sign in Sign if sign in signs),
        others=tuple(name for name in OTHERS if verdict.counts.get(name)),
        problems=(
            *(f"it did not play as written: {problem}" for problem in trace.problems),
            *(f"{name} was seen, which must never happen" for name in NEVER if verdict.counts.get(name)),
            *(_unread(performance) if Sign.HANGING not in signs else ()),
        ),
        lacking=() if trace.for_good else tuple(report.unhealthy.values()),
    )


def _signs(performance: Performance, verdict: Verdict) -> Iterator[Sign]:
    if performance.trace.for_good:
        yield Sign.FOR_GOOD
    elif performance.trace.leaderless:
        yield Sign.LEADERLESS
    yield from (sign for sign in Sign if any(verdict.counts.get(anomaly) for anomaly in sign.anomalies))
    if verdict.groups.processed_again:
        yield Sign.AGAIN
    for finding in verdict.findings(InconsistentOffset):
        if len({witness.value for witness in finding.seen if witness.by == "poll"}) > 1:
            yield Sign.CHANGED_READ


def _unread(performance: Performance) -> Iterator[str]:
    """A log that was not read to its end may have lost more."""
    if not performance.report.drained and not performance.trace.for_good:
        yield "the log was not read to its end, so its losses are not known"
