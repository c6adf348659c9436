"""Requests by which an operator takes nodes out of a cluster and puts them in (KIP-853, KIP-631).

No client library here has them: kafka-python makes the messages from their fields
(:mod:`harness.worlds.clients.messages`). They go to any broker, which hands them to the active controller.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from kafka.errors import BrokerIdNotRegisteredError, DuplicateVoterError, VoterNotFoundError, for_code
from kafka.protocol.api_message import ApiMessage

from harness.worlds.clients import messages
from harness.worlds.clients.direct_connection import DirectConnection

_CLIENT_ID: Final = "ackproof-admin"
#: The listener of controllers, as the harness configures them.
_LISTENER: Final = "CONTROLLER"
#: Errors that say that what is asked for is so already: an earlier request was carried out, and its answer got lost.
_DONE: Final = (BrokerIdNotRegisteredError, DuplicateVoterError, VoterNotFoundError)

Address = tuple[str, int]


def message_named(name: str) -> Any:
    """The class of a message whose fields are in :mod:`harness.worlds.clients.messages`."""
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=messages)


AddRaftVoterRequest: Final = message_named("AddRaftVoterRequest")
RemoveRaftVoterRequest: Final = message_named("RemoveRaftVoterRequest")
UnregisterBrokerRequest: Final = message_named("UnregisterBrokerRequest")
#: The library finds the classes of answers by itself.
RESPONSES: Final = tuple(
    map(message_named, ("AddRaftVoterResponse", "RemoveRaftVoterResponse", "UnregisterBrokerResponse"))
)


def add_voter(broker: Address, node: int, directory: UUID, address: Address, limit_s: float) -> str:
    """Make the controller ``node``, which fetches the metadata already, a voter. The answer is empty, or why not.

    ``directory`` is the id of its log directory, ``address`` its own, ``broker`` that the one that is asked.

    Raises:
        OSError, KafkaError: no answer came in time; it may be a voter all the same.
    """
    host, port = address
    request = AddRaftVoterRequest[0](
        cluster_id=None,
        timeout_ms=int(limit_s * 1000),
        voter_id=node,
        voter_directory_id=directory,
        listeners=[AddRaftVoterRequest.Listener(version=0, name=_LISTENER, host=host, port=port)],
    )
    return _asked(broker, request, limit_s)


def remove_voter(broker: Address, node: int, directory: UUID, limit_s: float) -> str:
    """Let the controller ``node`` be a voter no longer. Answer, errors and the rest as above."""
    request = RemoveRaftVoterRequest[0](cluster_id=None, voter_id=node, voter_directory_id=directory)
    return _asked(broker, request, limit_s)


def unregister_broker(broker: Address, node: int, limit_s: float) -> str:
    """Let the cluster forget the broker ``node``, which has stopped. Answer, errors and the rest as above."""
    return _asked(broker, UnregisterBrokerRequest[0](broker_id=node), limit_s)


def _asked(broker: Address, request: Any, limit_s: float) -> str:
    with DirectConnection(broker, _CLIENT_ID, limit_s) as connection:
        response = connection.ask(request)
    error = for_code(response.error_code)
    if response.error_code == 0 or issubclass(error, _DONE):
        return ""
    if error.retriable:
        raise error(response.error_message or "")
    return f"{error.__name__}: {response.error_message}" if response.error_message else error.__name__
