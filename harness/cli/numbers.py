"""Whole numbers among options: click's type for them, with the bounds and the words that plans have."""

from __future__ import annotations

from typing import Any

import click

from harness.plan import BOUNDS


class BoundedNumber(click.IntRange):
    """A whole number within the bounds that it has under ``key`` in :data:`harness.plan.bounds.BOUNDS`."""

    def __init__(self, key: str) -> None:
        self._bounds = BOUNDS[key]
        super().__init__(int(self._bounds.least), int(self._bounds.most))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click: the number, or a usage error in the words of plans."""
        number: int = click.INT.convert(value, param, ctx)
        if problem := self._bounds.problem(number):
            self.fail(problem, param, ctx)
        return number
