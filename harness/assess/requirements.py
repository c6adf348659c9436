"""Requirements of ``--require``: sentences that an assessment meets or does not, so that CI can fail by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from checkers import counted
from harness.assess.performing import LOSSES, Harm, families_of
from harness.assess.sentences import names_of, story_words
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, PlanError
from harness.records.assessment_file import Assessed, Assessment, Requirement, ShownStory
from nemesis.scenarios import FAMILIES
from workloads import shown, unknown_name

#: The reasons that a group gives against a requirement, which may name families of faults.
Form = Callable[[Assessed, Sequence[str]], Iterator[str]]

#: The beginning of a reason that proves nothing.
_NOT_KNOWN: Final = "not known: "
_NO_LOSS: Final = re.compile(r"no loss by (.+)")
_FORMS: Final = (
    '"no loss by kill, pause, partition", "no duplicates", "no disorder", "no weakness", "no risk", "no known defect" '
    'or "nothing broken now"'
)


def families_required(texts: Sequence[str]) -> list[str]:
    """The families that requirements name.

    Raises:
        PlanError: a text is not a requirement, or names a family that does not exist.
    """
    families = [family for text in texts for family in _required(text)[1]]
    for family in families:
        if family not in FAMILIES:
            raise PlanError(f"--require: {unknown_name('family of faults', family, FAMILIES)}")
    return families


def judged(text: str, assessment: Assessment) -> Requirement:
    """The requirement ``text``, held against an assessment.

    What was not understood, and could decide it, comes before every other reason: a reason that was reckoned with a
    default in its place proves nothing. One that was reckoned with the best of the possible values proves as much as
    any other.
    """
    form, families = _required(text)
    against: dict[str, list[str]] = {}
    open_still: dict[str, list[str]] = {}
    unclear = False
    for group in assessment.groups:
        for reason in form(group, families):
            _note(open_still if reason.startswith(_NOT_KNOWN) else against, reason, group)
        for each in group.unclear:
            if each.name not in DECIDES_LESS or form in DECIDES_LESS[each.name]:
                unclear = unclear or not each.at_best
                _note(open_still, f"{_NOT_KNOWN}{each.sentence}", group)
    not_known = [f"{names_of(topics)}: {reason}" for reason, topics in open_still.items()]
    not_known += [f"{_NOT_KNOWN}{what} could not be read" for what in assessment.unread]
    if not assessment.groups:
        not_known.append(f"{_NOT_KNOWN}there is no topic, or none that the user may see")
    reasons = [f"{names_of(topics)}: {reason}" for reason, topics in against.items()]
    decided = not unclear and bool(reasons or not not_known)
    return Requirement(text=text, met=not (reasons or not_known), decided=decided, reasons=(*not_known, *reasons))


def exit_code_of(requirements: Sequence[Requirement]) -> int:
    """The exit code: 1 where a requirement is certainly not met, 2 where one is not known."""
    if any(each.decided and not each.met for each in requirements):
        return EXIT_BROKEN
    return EXIT_HELD if all(each.met for each in requirements) else EXIT_UNKNOWN


def _note(reasons: dict[str, list[str]], reason: str, group: Assessed) -> None:
    topics = reasons.setdefault(reason, [])
    topics += (name for name in group.topics if name not in topics)


def _required(text: str) -> tuple[Form, Sequence[str]]:
    words = " ".join(text.lower().split())
    if match := _NO_LOSS.fullmatch(words):
        return _loses, [family for family in re.split(r"[\s,]+(?:and\s+)?", match[1].strip(" ,")) if family]
    if words not in _SIMPLE:
        raise PlanError(f"--require {shown(text)} is not understood; write {_FORMS}")
    return _SIMPLE[words], ()


def _loses(group: Assessed, families: Sequence[str]) -> Iterator[str]:
    for promised in group.promised:
        if not promised.kept and (some := [family for family in promised.families if family in families]):
            yield f"not promised under {', '.join(some)}: {promised.sentence}"
    yield from _shown_by(group, lambda story: story.harm in LOSSES and set(story.families) <= set(families))
    yield from _unknown(group, families)
    yield from (concern.sentence for concern in group.concerns if concern.name == "unwritable")


def _unknown(group: Assessed, families: Collection[str]) -> Iterator[str]:
    """The stories of these families that tell nothing: what they would have shown is not known."""
    for text in group.unknown:
        if set(families_of(text.partition(":")[0])) <= set(families):
            yield f"{_NOT_KNOWN}{text}"


def _harmed(*harms: Harm) -> Form:
    def reasons(group: Assessed, _: Sequence[str]) -> Iterator[str]:
        yield from _shown_by(group, lambda story: story.harm in harms)
        yield from _unknown(group, FAMILIES)

    return reasons


def _of_kind(kind: str) -> Form:
    def reasons(group: Assessed, _: Sequence[str]) -> Iterator[str]:
        yield from (f"{concern.name}: {concern.sentence}" for concern in group.concerns if concern.kind == kind)

    return reasons


def _shown_by(group: Assessed, counts: Callable[[ShownStory], bool]) -> Iterator[str]:
    """A reason for each concern: the first story of it that counts, and how many more there are; each story once."""
    seen: set[tuple[str, str]] = set()
    for concern in (*group.concerns, *group.left):
        stories = [story for story in concern.shown if counts(story) and (story.story, story.harm) not in seen]
        seen |= {(story.story, story.harm) for story in stories}
        if stories:
            more = f"; and {counted(len(stories) - 1, 'more story', 'more stories')}" if stories[1:] else ""
            yield f"{concern.name}: {story_words(stories[0])}{more}"


_SIMPLE: Final[Mapping[str, Form]] = {
    "no duplicates": _harmed(Harm.TWICE),
    "no disorder": _harmed(Harm.ORDER),
    "no weakness": _of_kind("weakness"),
    "no risk": _of_kind("risk"),
    "no known defect": _of_kind("defect"),
    "nothing broken now": _of_kind("now"),
}
#: The requirements that a setting can decide, where these are not all: a value of it that was not understood leaves
#: the others as they are.
DECIDES_LESS: Final[Mapping[str, tuple[Form, ...]]] = {
    name: tuple(_SIMPLE[form] for form in ("no weakness", "no risk", "no known defect"))
    for name in (
        "auto.create.topics.enable", "auto.offset.reset", "broker.rack", "compression.type",
        "default.replication.factor", "enable.auto.commit", "enable.partition.eof", "group.id", "group.protocol",
        "isolation.level", "log.dir", "log.dirs", "log.retention.hours", "log.retention.minutes", "log.retention.ms",
        "offsets.retention.minutes", "offsets.topic.replication.factor", "replica.selector.class", "retention.ms",
        "transaction.partition.verification.enable", "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    )
}  # fmt: skip
