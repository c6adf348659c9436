"""Numbers among options: click's types for them, with the words that plans have for what is wrong."""

from __future__ import annotations

import math
from typing import Any, Final

import click

from harness.plan import BOUNDS
from workloads import shown


class Amount(click.FloatRange):
    """A number of ``units`` from ``least`` to ``most``. A limit that is no number would never be reached."""

    def __init__(self, units: str, least: float, most: float) -> None:
        super().__init__(least, most)
        self._units, self._least, self._most = units, least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click: the number, or a usage error."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not number >= self._least:
            words = f"takes a number of {self._units}, {self._least:g} or more, not {shown(str(value))}"
            self.fail(words, param, ctx)
        if number > self._most:
            self.fail(f"{number:g} is too large; the most is {self._most:g} {self._units}", param, ctx)
        return number


#: The seconds that a command may take: thirty days at most.
seconds_type: Final = Amount("seconds", 0, 30 * 86_400)


class WholeNumber(click.IntRange):
    """A whole number from ``least`` to ``most``."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least, most)
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click: the number, or a usage error in the words of plans."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"takes a whole number, not {shown(str(value))}", param, ctx)
        if problem := self._problem(number):
            self.fail(problem, param, ctx)
        return number

    def _problem(self, number: int) -> str | None:
        if number < self._least:
            return f"{number} is too small; the least is {self._least}"
        return f"{number} is too large; the most is {self._most}" if number > self._most else None


class BoundedNumber(WholeNumber):
    """A whole number within the bounds that it has under ``key`` in :data:`harness.plan.bounds.BOUNDS`."""

    def __init__(self, key: str) -> None:
        self._bounds = BOUNDS[key]
        super().__init__(int(self._bounds.least), int(self._bounds.most))

    def _problem(self, number: int) -> str | None:
        return self._bounds.problem(number)
