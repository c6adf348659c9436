"""Fits a script to settings that its author did not know: every step may fail, and there may be fewer replicas.

A step that could not be done under such settings is a fact of the performance. With fewer replicas than the script has
brokers a step, or a state, that has no broker left is left out, and so is a record that would be sent to such a broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from harness.runs.stories.steps import ScriptState, Step
from harness.runs.stories.steps.faults import ReleaseFirst
from harness.runs.stories.steps.groups import PollUntil
from harness.runs.stories.steps.waits import WaitUntil
from harness.runs.stories.table.story import Story
from nemesis.cluster import CLIENTS, CONTROLLER, Link

Fitted = TypeVar("Fitted", bound=Step | ScriptState)


def fitted(story: Story, replicas: int) -> Story:
    """The story with the first ``replicas`` of its brokers, whose steps may all fail."""
    return msgspec.structs.replace(story, steps=tuple(_steps(story.steps, replicas)))


def _steps(steps: Sequence[Step], replicas: int) -> Iterator[Step]:
    for step in steps:
        fewer: Step | None = step
        if isinstance(step, ReleaseFirst):
            fewer = step if _is_left(step.link, replicas) else None
        elif isinstance(step, WaitUntil | PollUntil):
            fewer = _wait(step, replicas)
        else:
            fewer = _fitted(step, replicas)
        if fewer is not None:
            yield msgspec.structs.replace(fewer, tried=True)


def _wait(step: WaitUntil | PollUntil, replicas: int) -> WaitUntil | PollUntil | None:
    """The wait for the states that are left, in the words of the script."""
    head, until, tail = step.text.partition(" until ")
    left = [
        (words, state)
        for words, given in zip(tail.split(" and "), step.states, strict=True)
        if (state := _fitted(given, replicas)) is not None
    ]
    if not left:
        return None
    text = head + until + " and ".join(words for words, _ in left)
    return msgspec.structs.replace(step, text=text, states=tuple(state for _, state in left))


def _fitted(subject: Fitted, replicas: int) -> Fitted | None:
    """A step or a state with the brokers that are left; None where it has lost all of those that it names."""
    changed: dict[str, Any] = {}
    for name in subject.__struct_fields__:
        value = getattr(subject, name)
        if name in {"to", "broker"} and isinstance(value, int) and value >= replicas:
            return None
        if name in {"nodes", "brokers"} and value:
            changed[name] = tuple(node for node in value if not isinstance(node, int) or node < replicas)
        if name == "links" and value:
            changed[name] = tuple(link for link in value if _is_left(link, replicas))
    if changed and not any(changed.values()):
        return None
    return msgspec.structs.replace(subject, **changed)


def _is_left(link: Link, replicas: int) -> bool:
    return all(end < replicas or end in {CONTROLLER, CLIENTS} for end in (link.source, link.target))
