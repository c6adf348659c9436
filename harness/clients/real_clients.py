"""The client libraries as values, and the clients of one run that are made of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.clients.adapter import AdaptedConsumer, AdaptedProducer
from harness.clients.client_thread import ThreadedClock
from harness.clients.credentials import password_of
from harness.errors import HostError
from harness.plan import OPEN, Security
from workloads import ClientCapability, GroupProtocol, IsolationLevel, Membership, Settings

Configuration = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class ClientLibrary:
    """One client library: how its clients are configured and made, and what they cannot do.

    Attributes:
        producer_configuration: from the settings, the "host:port" of brokers, the instance's first process and its
            transactional id, if any.
        consumer_configuration: from the same, the membership, if any, and the isolation level.
        login_settings: those that log a client in, without the password, so that files may have them.
        password: the name of the property that has the password.
        rack: the name of the property that says in which rack a consumer is (KIP-392).
        producer: makes one on a clock.
        consumer: makes one on a clock, with or without a membership.
        protocols: the group protocols that its consumers know.
        name: library and version.
        defaults: the library's own settings by role, as far as it discloses them.
        lacks: the capabilities that its clients do not have, and why.
        unfit: the reason why the installed release cannot be used; empty if it can.
    """

    producer_configuration: Callable[[Settings, Sequence[str], int, str | None], Configuration]
    consumer_configuration: Callable[[Settings, Sequence[str], int, Membership | None, IsolationLevel], Configuration]
    login_settings: Callable[[Security], Configuration]
    password: str
    producer: Callable[[ThreadedClock, Configuration], AdaptedProducer[Any]]
    consumer: Callable[[ThreadedClock, Configuration, Membership | None], AdaptedConsumer[Any]]
    name: str
    defaults: Mapping[str, Mapping[str, object]]
    protocols: Sequence[GroupProtocol] = ("classic",)
    lacks: Mapping[ClientCapability, str] = field(default_factory=dict)
    unfit: str = ""
    rack: str = "client.rack"

    def login(self, security: Security) -> Configuration:
        """The settings that log a client in, with the password; only the library may have them.

        Raises:
            HostError: the password is not where the plan says.
        """
        secret = {self.password: password_of(security)} if security.authenticates else {}
        return self.login_settings(security) | secret

    def clients(
        self,
        clock: ThreadedClock,
        settings: Settings,
        bootstrap: Sequence[str],
        security: Security = OPEN,
        *,
        racks: Sequence[str] = (),
    ) -> RealClients:
        """The clients of one run. ``bootstrap`` are "host:port" of all brokers; consumers are in ``racks`` in turn.

        Raises:
            HostError: the installed release is unfit, or the password is not where the plan says.
        """
        if self.unfit:
            raise HostError(self.unfit)
        return RealClients(self._with_racks(racks) if racks else self, clock, settings, tuple(bootstrap), security)

    def _with_racks(self, racks: Sequence[str]) -> ClientLibrary:
        """Put consumers into these racks: the first into the first rack, and so on in turn."""

        def configuration(
            settings: Settings,
            bootstrap: Sequence[str],
            process: int,
            membership: Membership | None,
            isolation: IsolationLevel,
        ) -> Configuration:
            configured = self.consumer_configuration(settings, bootstrap, process, membership, isolation)
            return configured | {self.rack: racks[process % len(racks)]}

        return replace(self, consumer_configuration=configuration)


class RealClients:
    """Makes the clients of a run, and closes them all within one limit."""

    def __init__(
        self,
        library: ClientLibrary,
        clock: ThreadedClock,
        settings: Settings,
        bootstrap: tuple[str, ...],
        security: Security,
    ) -> None:
        self._library = library
        self._clock = clock
        self._settings = settings
        self.bootstrap: Final = bootstrap
        self._login_written = library.login_settings(security)
        self._login = library.login(security)
        self._made: list[AdaptedProducer[Any] | AdaptedConsumer[Any]] = []
        self.name = library.name
        self.lacks = library.lacks
        self.protocols = library.protocols

    def producer(self, process: int, transactional_id: str | None = None) -> AdaptedProducer[Any]:
        """Make a producer and remember it, so that it is closed."""
        configuration = self._library.producer_configuration(self._settings, self.bootstrap, process, transactional_id)
        producer = self._library.producer(self._clock, configuration | self._login)
        self._made.append(producer)
        return producer

    def consumer(
        self, process: int, membership: Membership | None = None, isolation: IsolationLevel = "read_uncommitted"
    ) -> AdaptedConsumer[Any]:
        """Make a consumer and remember it, so that it is closed."""
        if membership is not None and membership.protocol not in self.protocols:
            raise ValueError(f"{self.name} does not know the group protocol {membership.protocol!r} (KIP-848)")
        configuration = self._library.consumer_configuration(
            self._settings, self.bootstrap, process, membership, isolation
        )
        consumer = self._library.consumer(self._clock, configuration | self._login, membership)
        self._made.append(consumer)
        return consumer

    def effective_configuration(self) -> dict[str, Configuration]:
        """The settings that the library really works with by role, with its defaults; names are those of process 0."""
        library, settings, bootstrap = self._library, self._settings, self.bootstrap
        chosen = {
            "producer": library.producer_configuration(settings, bootstrap, 0, None),
            "consumer": library.consumer_configuration(settings, bootstrap, 0, None, "read_uncommitted"),
        }
        return {
            role: _writable({**library.defaults[role], **own, **self._login_written}) for role, own in chosen.items()
        }

    def close(self, limit_s: float) -> list[str]:
        """Close every client, wait for its threads, and name those that still live after ``limit_s``."""
        for client in self._made:
            client.close()
        deadline = time.monotonic() + limit_s
        left = [client.owner.join(max(deadline - time.monotonic(), 0)) for client in self._made]
        return [name for name in left if name is not None]


def _writable(configuration: Configuration) -> Configuration:
    """Keep the plain values of a configuration; infinity becomes a word, because JSON has none."""
    return {
        name: "infinite" if value == float("inf") else value
        for name, value in configuration.items()
        if isinstance(value, (str, int, float)) and not name.startswith("sasl_kerberos")
    }
