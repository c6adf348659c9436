"""Asks a cluster that exists already, or says why none can: the same in every command."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from kafka.errors import KafkaError

from harness.ground.errors import AccessError, NotReachableError
from harness.plan import Existing
from harness.worlds.clients import at_home, named, require_credentials
from harness.worlds.kafka.administration import FAR_ASK_LIMIT_S, Administration, UnansweredError
from workloads import reason_of

#: The wait for a server that gave no answer, to see why.
_TOUCH_LIMIT_S: Final = 2.0
#: The question of a client without TLS and SASL for all topics (Metadata, version 1), with its length before it. A
#: broker that wants SASL hangs up on it, one that wants TLS answers with an alert; no answer of a broker begins so.
_QUESTION: Final = bytes.fromhex("0000000e 00030001 00000000 ffff ffffffff")
_ALERT: Final = b"\x15"
_HANGS_UP: Final = "does not let this client in"


@contextmanager
def reached(world: Existing) -> Iterator[Administration]:
    """The administration of the cluster of ``world``, for questions to it.

    Raises:
        AccessError: a file or the password is missing or wrong, or brokers refuse us.
        NotReachableError: no server answers; the text says why of each.
    """
    security = at_home(world.security)
    require_credentials(security)
    with closing(Administration(lambda: world.bootstrap, limit_s=FAR_ASK_LIMIT_S, security=security)) as administration:
        try:
            yield administration
        except UnansweredError as error:
            reasons = [why_silent(server) for server in world.bootstrap]
            kind = AccessError if any(_HANGS_UP in reason for reason in reasons) else NotReachableError
            raise kind(f"no server answers: {'; '.join(reasons)}; check the addresses and the network") from error
        except KafkaError as error:
            raise AccessError(
                f"the cluster refused a request ({named(error)}); its user needs Describe and DescribeConfigs on "
                "topics and on the cluster"
            ) from error


def require_answer(world: Existing) -> None:
    """Refuse a cluster that gives no answer before hours of runs; errors as of :func:`reached`."""
    with reached(world) as administration:
        administration.running()


def why_silent(server: str) -> str:
    """The reason of a server ("host:port") that gives no answer: its name, its port, or itself."""
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_TOUCH_LIMIT_S) as connection:
            how = _HANGS_UP if _hangs_up(connection) else "does not answer as a broker"
            return f"{server} accepts connections but {how}; does it need TLS or SASL (--access)?"
    except socket.gaierror:
        return f"the name {host} does not resolve"
    except ConnectionRefusedError:
        return f"{server} refuses connections, so no process listens there"
    except OSError as error:
        return f"{server} cannot be reached ({reason_of(error)})"


def _hangs_up(connection: socket.socket) -> bool:
    """True where the server ends the connection of a client that uses neither TLS nor SASL; a slow one is silent."""
    try:
        connection.sendall(_QUESTION)
        return connection.recv(1) in {b"", _ALERT}
    except TimeoutError:
        return False
    except ConnectionError:
        return True
