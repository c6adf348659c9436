"""Requirements of ``--require``: sentences that an assessment meets or does not, so that CI can fail by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from checkers import counted
from harness.assess.performing import LOSSES, Harm, families_of
from harness.assess.sentences import names_of, story_words
from harness.errors import PlanError
from harness.records.assessment_file import Assessed, Assessment, Requirement, ShownStory
from nemesis.scenarios import FAMILIES
from workloads import shown, unknown_name

#: The reasons that a group gives against a requirement, which may name families of faults.
Form = Callable[[Assessed, Sequence[str]], Iterator[str]]

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
    """The requirement ``text``, held against an assessment."""
    form, families = _required(text)
    having: dict[str, list[str]] = {}
    for group in assessment.groups:
        for reason in form(group, families):
            having.setdefault(reason, []).extend(name for name in group.topics if name not in having.get(reason, ()))
    reasons = [f"{names_of(topics)}: {reason}" for reason, topics in having.items()]
    reasons += [f"not known: {what} could not be read" for what in assessment.unread]
    if not assessment.groups:
        reasons.append("not known: there is no topic, or none that the user may see")
    return Requirement(text=text, met=not reasons, reasons=tuple(reasons))


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


def _unknown(group: Assessed, families: Sequence[str]) -> Iterator[str]:
    for text in group.unknown:
        if set(families_of(text.partition(":")[0])) <= set(families):
            yield f"not known: {text}"


def _harmed(*harms: Harm) -> Form:
    def reasons(group: Assessed, _: Sequence[str]) -> Iterator[str]:
        yield from _shown_by(group, lambda story: story.harm in harms)

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
