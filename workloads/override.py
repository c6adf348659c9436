"""Marks methods that their base class or contract documents; Python has ``typing.override`` from 3.12 on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def override(method: Method) -> Method:
    """Mark ``method`` as one whose docstring is that of the method it replaces."""
    return method
