"""A step of a script, and a state that a step can wait for: each class knows all that is to be known of it.

Its docstring begins with its meaning, as the page of reference shows it. A new one is a class in a module of this
folder, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

import msgspec

from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.story_world import NoSuchRoleError
from harness.runs.stories.steps.form import Form
from nemesis.cluster import Capability
from nemesis.faults import Fault


class WorldLimits(StrEnum):
    """The worlds that have a step or a state, whatever it needs, as the page of reference says it."""

    NONE = ""
    VIRTUAL = "virtual time only"
    NOT_ON_PROCESSES = "not on processes"
    NOT_ON_KAFKA = "not on Kafka"


class InScript(msgspec.Struct, frozen=True):
    """A step or a state: something that is written in a script."""

    form: ClassVar[str] = ""
    """Its words in a script (:mod:`harness.runs.stories.steps.form`); empty: none of its own."""
    limits: ClassVar[WorldLimits] = WorldLimits.NONE
    needs: ClassVar[tuple[Capability, ...]] = ()
    """The parts of a target that it uses."""

    @classmethod
    def forms(cls) -> Iterator[Form]:
        """Every form in which it is written, with its meaning."""
        if cls.form:
            yield Form(cls, cls.form, (cls.__doc__ or "").partition("\n")[0].removesuffix("."), cls.needs)


class Step(InScript, frozen=True, kw_only=True):
    """One line of a script: where it stands, its text, and whether it may fail (``tried``).

    ``tried_in`` are the columns in which it may; None: in every column.
    """

    line: int
    text: str
    tried: bool = False
    tried_in: tuple[str, ...] | None = None

    strikes: ClassVar[type[Fault] | None] = None
    """The kind of fault that every step of this kind begins, if any."""

    @property
    def begins(self) -> type[Fault] | None:
        """The kind of fault that it begins, if any."""
        return self.strikes

    @property
    def uses(self) -> tuple[Capability, ...]:
        """The parts of a target that this one uses."""
        return self.needs

    @property
    def frees_links(self) -> bool:
        """True if messages may pass again that did not."""
        return False

    def act(self, stage: StoryStage) -> str | None:
        """Do it; the result in words, if there is one to tell.

        Raises:
            StepError: it could not be done; the text says why.
        """
        raise NotImplementedError


class ScriptState(InScript, frozen=True):
    """A state that a step can wait for."""

    def holds(self, stage: StoryStage) -> bool:
        """True if it holds now.

        Raises:
            StepError: it speaks of a record that was not sent, or of a role that no broker has.
        """
        raise NotImplementedError

    def instead(self, stage: StoryStage) -> str:
        """The facts of the cluster while it does not hold, in words; errors as :meth:`holds`."""
        raise NotImplementedError

    def is_so(self, stage: StoryStage) -> bool:
        """True if it holds now; a state of a role that no broker has does not hold yet.

        Raises:
            StepError: it speaks of a record that was not sent.
        """
        try:
            return self.holds(stage)
        except NoSuchRoleError:
            return False

    def why_not(self, stage: StoryStage) -> str:
        """The facts of the cluster while it does not hold, in words, also of a role that no broker has."""
        try:
            return self.instead(stage)
        except NoSuchRoleError as error:
            return str(error)
