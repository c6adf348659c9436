"""Whole numbers among options: click's types for them, with the words that plans have for what is wrong."""

from __future__ import annotations

from typing import Any

import click

from harness.plan import BOUNDS
from workloads import shown


class WholeNumber(click.IntRange):
    """A whole number from ``least`` on, to ``most`` where there is one."""

    def __init__(self, least: int, most: int | None = None) -> None:
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
        too_large = self._most is not None and number > self._most
        return f"{number} is too large; the most is {self._most}" if too_large else None


class BoundedNumber(WholeNumber):
    """A whole number within the bounds that it has under ``key`` in :data:`harness.plan.bounds.BOUNDS`."""

    def __init__(self, key: str) -> None:
        self._bounds = BOUNDS[key]
        super().__init__(int(self._bounds.least), int(self._bounds.most))

    def _problem(self, number: int) -> str | None:
        return self._bounds.problem(number)
