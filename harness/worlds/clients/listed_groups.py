"""Asks a coordinator for the state of a consumer group, of either protocol."""

from __future__ import annotations

from typing import Final

from kafka.errors import KafkaError
from kafka.protocol.admin import ListGroupsRequest

from harness.worlds.clients.direct_connection import DirectConnection

#: The state of a group that has no members.
EMPTY: Final = "Empty"
_CLIENT_ID: Final = "ackproof-groups"
#: The first version that tells states (KIP-518).
_VERSION: Final = 4


def group_state(broker: tuple[str, int], group: str, limit_s: float) -> str | None:
    """The state of ``group`` by the word of a ``broker``; None where it does not coordinate it, or gives no answer."""
    try:
        with DirectConnection(broker, _CLIENT_ID, limit_s) as connection:
            response = connection.ask(ListGroupsRequest[_VERSION](states_filter=[]))
    except (OSError, KafkaError):
        return None
    return next((str(each.group_state) for each in response.groups if each.group_id == group), None)
