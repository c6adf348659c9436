"""Exhaustive search in small scopes: every interleaving of messages, timers, crashes and writes of the real core.

The way in: a scope says what may happen how often (``scopes.toml``); :func:`exhaust` looks at every state;
:func:`steps_of` says a counterexample in words. Begin to read with ``searched.py``, then ``nodes.py``.
"""

from harness.lab.explore.any_scope import AnyScope
from harness.lab.explore.groups.rules import GROUP_RULES
from harness.lab.explore.groups.scope import GroupScope
from harness.lab.explore.kinds import known_scopes, rules_of, scope_named
from harness.lab.explore.rules import PERMITTED, RULES
from harness.lab.explore.scope import Constants, Scope
from harness.lab.explore.search import Limits, Result, exhaust
from harness.lab.explore.steps import ShownStep, step_lines, steps_of
from harness.lab.explore.story_file import column_of, lost_in, story_text
from harness.lab.explore.transactions.rules import TRANSACTION_RULES
from harness.lab.explore.transactions.scope import TransactionScope

__all__ = [
    "GROUP_RULES",
    "PERMITTED",
    "RULES",
    "TRANSACTION_RULES",
    "AnyScope",
    "Constants",
    "GroupScope",
    "Limits",
    "Result",
    "Scope",
    "ShownStep",
    "TransactionScope",
    "column_of",
    "exhaust",
    "known_scopes",
    "lost_in",
    "rules_of",
    "scope_named",
    "step_lines",
    "steps_of",
    "story_text",
]
