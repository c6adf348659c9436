"""A renderer of one kind of view: the rows of a history that it needs, and what it draws from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from nemesis.receipts import Receipt
from workloads import Event
from workloads.history import Needed


class Material(NamedTuple):
    """The directory of a run, the events that were read of it, and the receipts of faults that took effect."""

    run: Path
    events: Iterable[Event]
    receipts: Sequence[Receipt] = ()


class Renderer(NamedTuple):
    """The ``words`` of the page below its drawings, and two functions of a log partition and a view of the kind.

    ``needed`` marks rows, ``draw`` gives a drawing, which is empty where the material does not show the view.
    """

    words: str
    needed: Callable[[object, Any], Needed]
    draw: Callable[[object, Any, Material], Markup]
