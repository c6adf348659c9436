"""Long work reports to a :class:`Progress` how far it is; the command line has those that show it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Progress:
    """Work reports its steps here, in phases that do not overlap. This one shows nothing: for tests and ``--json``."""

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None) -> Iterator[None]:  # noqa: ARG002 - for those that show it
        """Surround work of ``total`` steps; None where the number is not known."""
        yield

    def advance(self, note: str = "") -> None:
        """Count one step as done; ``note`` says how things are now."""

    def reach(self, done: int, total: int, unit: str) -> None:
        """Count ``done`` of ``total`` steps as done, in ``unit``; for phases whose steps are counted elsewhere."""

    def say(self, text: str) -> None:
        """Show one line that stays."""
