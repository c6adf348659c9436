"""Exhaustive search in small scopes: every interleaving of messages, timers, crashes and writes of the real core.

The way in: a :class:`Scope` says what may happen how often (``scopes.toml``); :func:`exhaust` looks at every state;
:func:`steps_of` says a counterexample in words. Begin to read with ``nodes.py``.
"""

from harness.explore.rules import PERMITTED, RULES
from harness.explore.scope import Constants, Scope, known_scopes, scope_named
from harness.explore.search import Limits, Result, exhaust
from harness.explore.steps import ShownStep, step_lines, steps_of
from harness.explore.story_file import column_of, lost_in, story_text

__all__ = [
    "PERMITTED",
    "RULES",
    "Constants",
    "Limits",
    "Result",
    "Scope",
    "ShownStep",
    "column_of",
    "exhaust",
    "known_scopes",
    "lost_in",
    "scope_named",
    "step_lines",
    "steps_of",
    "story_text",
]
