"""An assessment in words: the parts that the terminal, Markdown and the page share."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from checkers import counted
from harness.campaigns.report import milliseconds
from harness.records.assessment_file import Assessed, Assessment, Concern, MeasuredPrice, Promised, ShownStory

#: Names of topics that a line shows.
NAMES_MAX: Final = 3
#: Reasons of a requirement that are seen without asking for the rest.
REASONS_MAX: Final = 3
#: The word for a group that has nothing that is known here.
CLEAN: Final = "clean"
#: The word for a group whose old rules lose writes whatever is set, so that no change of settings is missing.
NOT_PROMISED: Final = "not promised"
TITLES: Final = {"now": "At this moment", "weakness": "Weak", "risk": "Risky", "defect": "Known defect"}
#: Titles of what no recommended setting prevents: where a further change does, and where none does.
AT_A_PRICE: Final = "At a higher price"
WHATEVER_IS_SET: Final = "Whatever is set"
#: The price of a change that costs nothing.
FREE: Final = "none"
#: The word for a group whose log partitions lack a leader or replicas in sync.
BROKEN_NOW: Final = "broken now"
_WORST: Final = {"weakness": "weak", "risk": "risky", "defect": "known defects"}
#: Every word for a group, the worst first.
_ANSWERS: Final = (BROKEN_NOW, NOT_PROMISED, *_WORST.values(), CLEAN)
_EVERY: Final = "every topic"
_NUMBER: Final = re.compile(r"\d+")
#: The first word of a further reason of a promise, unless it is a setting's name.
_BEGINNING: Final = re.compile(r"(?<=\)\. )[a-z](?=[a-z]* )")


class Said(NamedTuple):
    """A concern with its title, said once for every topic that has it. ``of`` names these."""

    title: str
    concern: Concern
    of: str


def heading(assessment: Assessment) -> str:
    """The first line: what was assessed, and the result. A topic counts where its worst answer is."""
    worst: dict[str, str] = {}
    for group in assessment.groups:
        for name in group.topics:
            worst[name] = min(worst.get(name, CLEAN), worst_of(group), key=_ANSWERS.index)
    words = list(worst.values())
    clean, defective, broken = words.count(CLEAN), words.count(_WORST["defect"]), words.count(BROKEN_NOW)
    release = f", Apache Kafka {assessment.release}" if assessment.release else ""
    brokers = f", {counted(assessment.brokers, 'broker')}" if assessment.brokers else ""
    answers = counted(len(assessment.groups), "answer")
    unknown = {text.partition(":")[0] for group in assessment.groups for text in group.unknown}
    moment = f"{broken:,} broken at this moment, " if broken else ""
    untold = f" {counted(len(unknown), 'story gives', 'stories give')} no answer, see below." if unknown else ""
    return (
        f"{counted(len(words), 'topic')} with {answers}{release}{brokers}: "
        f"{moment}{len(words) - clean - defective - broken:,} with a weakness or a risk, "
        f"{defective:,} with known defects only, {clean:,} without a known problem.{untold}"
    )


def names_of(topics: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(topics) - NAMES_MAX
    names = ", ".join(topics[:NAMES_MAX])
    return f"{names} and {more:,} more" if more > 0 else names


def settings_words(group: Assessed) -> str:
    """The settings that decide, as ``name=value``."""
    return ", ".join(f"{name}={value}" for name, value in group.settings.items())


def worst_of(group: Assessed) -> str:
    """One word for a group: that of its worst concern."""
    kinds = {concern.kind for concern in group.concerns}
    if "now" in kinds:
        return BROKEN_NOW
    if not group.clean and not kinds & {"weakness", "risk"}:
        return NOT_PROMISED
    return next((word for kind, word in _WORST.items() if kind in kinds), CLEAN)


def worst_first(assessment: Assessment) -> Assessment:
    """The same with the groups of the worst answers first."""
    groups = sorted(assessment.groups, key=lambda group: _ANSWERS.index(worst_of(group)))
    return msgspec.structs.replace(assessment, groups=tuple(groups))


class AnswerRow(NamedTuple):
    """A group in the table of all: its topics, its worst answer, and the change to begin with."""

    topics: str
    producer: str
    answer: str
    first_change: str


def table_of(assessment: Assessment) -> list[AnswerRow]:
    """A row for each group. What is about its topics, and not about every topic, is counted and comes first."""
    groups = assessment.groups
    everywhere = set.intersection(*({each.name for each in group.concerns} for group in groups)) if groups else set()
    return [_row(group, everywhere if len(groups) > 1 else set()) for group in groups]


def _row(group: Assessed, everywhere: Collection[str]) -> AnswerRow:
    answer, concerns = worst_of(group), ordered(group.concerns)
    own = [concern for concern in concerns if concern.name not in everywhere]
    if everywhere and own and answer == _WORST["defect"]:
        answer = f"{answer}, {len(own)} of its own"
    changes = list(dict.fromkeys(each.change for each in (*own, *concerns) if each.change)) or ["-"]
    more = f" ({len(changes) - 1:,} more)" if len(changes) > 1 else ""
    return AnswerRow(names_of(group.topics), group.producer, answer, f"{changes[0]}{more}")


def clean_words(group: Assessed) -> str:
    """The words about a group that has neither weakness nor risk, with their limits."""
    departed = f" ({group.departed} of them could not do every step under these settings)" if group.departed else ""
    defects = sum(concern.kind == "defect" for concern in group.concerns)
    head = f"{counted(defects, 'known defect')}, but no known weakness or risk" if defects else "No known problem"
    return (
        f"{head}: of {counted(group.performed, 'story', 'stories')}, none shows harm "
        f"that a recommended setting prevents{departed}. That is no proof: a story is one order of events."
    )


def story_words(shown: ShownStory) -> str:
    """One story, and what it shows."""
    together = f" (to prevent it, change {' and '.join(shown.together)}, too)" if shown.together else ""
    return f"{shown.story} {shown.title}: {_records(shown.records)} {shown.harm}{together}"


def _records(records: Sequence[str]) -> str:
    """Records of a script, such as ``x``, so that a reader who has not seen it knows what these are."""
    if list(records) == ["a record"]:
        return "a record"
    return f"{'a record' if len(records) == 1 else 'records'} ({', '.join(records)})"


def measured_words(price: MeasuredPrice) -> str:
    """The figures with a change, and those without it."""
    before, after = price.before, price.after
    change = f"from {_choice(before.settings)} to {_choice(after.settings)}"
    parts = [*_latencies("p50", after.p50_us, before.p50_us), *_latencies("p99", after.p99_us, before.p99_us)]
    load = [f"load {price.load} on {price.cores} cores"] if price.load else []
    runs = [price.day, f"{counted(price.runs, 'run')} each", *load, "without a fault"]
    return f"on {after.release} with {price.client}, {change} ({', '.join(runs)}): {', '.join(parts)}"


def _choice(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _latencies(name: str, after_us: int | None, before_us: int | None) -> Iterator[str]:
    if after_us is not None and before_us is not None:
        yield f"{name} of a write {milliseconds(after_us / 1000)} instead of {milliseconds(before_us / 1000)}"


def begun(promise: str) -> str:
    """The words of a promise, each of its reasons with a capital."""
    return _BEGINNING.sub(lambda letter: letter[0].upper(), promise)


def ordered(concerns: Sequence[Concern]) -> list[Concern]:
    """Concerns in the order of a page: broken now, weaknesses, risks, defects by the numbers in their names."""
    kinds = list(TITLES)

    def order_key(concern: Concern) -> tuple[int, str]:
        by_name = _NUMBER.sub(lambda digits: digits[0].zfill(9), concern.name) if concern.kind == "defect" else ""
        return kinds.index(concern.kind), by_name

    return sorted(concerns, key=order_key)


def left_title(concern: Concern) -> str:
    """The title of something that no recommended setting prevents."""
    return AT_A_PRICE if concern.change else WHATEVER_IS_SET


def gathered(assessment: Assessment, kinds: Collection[str] = tuple(TITLES), *, left: bool = True) -> list[Said]:
    """Every concern of these kinds once, then what is ``left``, however many groups have it. Defects that some topics
    have come before those of every topic.

    One that several groups show is taken from the group in which most stories show it.
    """
    having: dict[tuple[str, ...], list[tuple[Assessed, Concern]]] = {}
    for group in assessment.groups:
        for title, concern in _titled(group, kinds, left=left):
            having.setdefault((title, concern.name, concern.sentence, concern.change), []).append((group, concern))
    said = []
    for (title, *_), pairs in having.items():
        most = max((concern for _, concern in pairs), key=lambda concern: len(concern.shown))
        said.append(Said(title, most, _whose([group for group, _ in pairs], assessment)))
    places = [*TITLES.values(), AT_A_PRICE, WHATEVER_IS_SET]
    names = [concern.name for concern in ordered([each.concern for each in said])]
    in_order = {name: index for index, name in enumerate(dict.fromkeys(names))}
    defect = TITLES["defect"]
    return sorted(
        said,
        key=lambda each: (
            places.index(each.title),
            *((each.of.startswith(_EVERY), in_order[each.concern.name]) if each.title == defect else ()),
        ),
    )


def _titled(group: Assessed, kinds: Collection[str], *, left: bool) -> Iterator[tuple[str, Concern]]:
    yield from ((TITLES[each.kind], each) for each in ordered(group.concerns) if each.kind in kinds)
    if left:
        yield from ((left_title(each), each) for each in group.left)


def _whose(groups: Sequence[Assessed], assessment: Assessment) -> str:
    topics = tuple(dict.fromkeys(name for group in groups for name in group.topics))
    all_topics = {name for group in assessment.groups for name in group.topics}
    names = _EVERY if len(topics) == len(all_topics) > 1 else names_of(topics)
    producers = tuple(dict.fromkeys(group.producer for group in groups))
    all_producers = {group.producer for group in assessment.groups}
    return names if len(producers) == len(all_producers) else f"{names}; producer {names_of(producers)}"


def not_known(assessment: Assessment) -> Iterator[str]:
    """Everything that was not understood, and each story that tells nothing, once, with its topics."""
    yield from dict.fromkeys(each.sentence for group in assessment.groups for each in group.unclear)
    having: dict[str, list[Assessed]] = {}
    for group in assessment.groups:
        for text in group.unknown:
            having.setdefault(text, []).append(group)
    for text, groups in having.items():
        yield f"{text} ({_whose(groups, assessment)})"


def promises_said(assessment: Assessment) -> Iterator[str]:
    """Each promise once, with its topics and the families of faults under which it is made."""
    having: dict[Promised, list[Assessed]] = {}
    for group in assessment.groups:
        for promised in group.promised:
            having.setdefault(promised, []).append(group)
    for promised, groups in having.items():
        families = ", ".join(promised.families)
        yield f"Promised ({_whose(groups, assessment)}): {promised.sentence} Under: {families}."


def clean_said(assessment: Assessment) -> Iterator[str]:
    """The words about topics that have neither weakness nor risk; topics with the same words together."""
    having: dict[str, list[str]] = {}
    for group in assessment.groups:
        if group.clean:
            having.setdefault(clean_words(group), []).extend(group.topics)
    yield from (f"{names_of(topics)}: {words}" for words, topics in having.items())


def without_common(group: Assessed) -> Assessed:
    """The group with its state, weaknesses and risks only, where the rest is said once for all groups."""
    own = [concern for concern in ordered(group.concerns) if concern.kind != "defect"]
    return msgspec.structs.replace(group, concerns=tuple(own), left=())
