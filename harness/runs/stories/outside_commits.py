"""Acts on the groups of a script from outside: commits by who is no member, and the deletion of a group.

None of it is an operation of the history. What the group reads after it is judged, as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from harness.runs.stories.transactions import ScriptTransactions
from harness.worlds.contract import World
from workloads import Consumer, EventType, Membership, MemberToken, Offsets, SendOutcome

#: Told once, in words: why it was refused, or nothing.
Done = Callable[[str], None]
#: The name of the other group, behind that of the script's own.
_OTHERS = "others"


class OutsideCommits:
    """Commits and deletions from outside. Each commit is a client of its own."""

    def __init__(
        self, world: World, transactions: ScriptTransactions, membership: Membership, new_process: Callable[[], int]
    ) -> None:
        self._world = world
        self._transactions = transactions
        self._membership = membership
        self._new_process = new_process

    def commit(self, offsets: Mapping[str, int], done: Done, *, others: bool, transaction: str | None) -> None:
        """Commit offsets, by log partition: at once, or with a transaction that was begun.

        Raises:
            StepError: it was not begun.
        """
        group = self._membership.group
        membership = msgspec.structs.replace(self._membership, group=f"{group}-{_OTHERS}" if others else group)
        consumer = self._world.clients.consumer(self._new_process(), membership)
        commits = consumer.commits
        assert commits is not None, "it was made with a membership"  # noqa: S101
        if transaction is None:
            commits.commit(offsets, partial(_committed, consumer, done))
            return
        calls = self._transactions.transaction(transaction).instance.calls

        def named(token: MemberToken) -> None:
            calls.send_offsets(offsets, token, partial(_sent, consumer, done))

        commits.ask_member(named)

    def delete(self, coordinator: int, done: Done) -> None:
        """Have the group forgotten."""
        direct = self._world.direct
        assert direct is not None, "a world without single requests performs no script"  # noqa: S101
        direct.delete_group(coordinator, self._membership.group, lambda outcome: done(_error(outcome)))


def _committed(consumer: Consumer, done: Done, answer: Offsets) -> None:
    consumer.close()
    done(answer.error or "")


def _sent(consumer: Consumer, done: Done, outcome: SendOutcome) -> None:
    consumer.close()
    done(_error(outcome))


def _error(outcome: SendOutcome) -> str:
    return "" if outcome.type is EventType.OK else outcome.error or "no reason was given"
