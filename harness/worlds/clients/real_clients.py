"""The client libraries as values, and the clients of one run that are made of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.ground.errors import HostError
from harness.plan import OPEN, Security
from harness.worlds.clients.adapter import AdaptedConsumer, AdaptedProducer
from harness.worlds.clients.client_thread import ThreadedClock
from harness.worlds.clients.credentials import password_of
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
        beside: libraries that take turns with this one, by the number of a client's process.
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
    beside: tuple[ClientLibrary, ...] = ()

    def taking_turns(self, others: Sequence[ClientLibrary]) -> ClientLibrary:
        """This library where clients of ``others`` are made too, in turn."""
        return replace(self, beside=tuple(others))

    def of(self, process: int) -> ClientLibrary:
        """The library that makes the client of this process."""
        return (self, *self.beside)[process % (1 + len(self.beside))]

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
        libraries = (self, *self.beside)
        if unfit := next((library.unfit for library in libraries if library.unfit), ""):
            raise HostError(unfit)
        first, *others = (library.with_racks(racks) if racks else library for library in libraries)
        return RealClients(first.taking_turns(others), clock, settings, tuple(bootstrap), security)

    def with_racks(self, racks: Sequence[str]) -> ClientLibrary:
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
        libraries = (library, *library.beside)
        self._login_written = library.login_settings(security)
        self._logins = {each.name: each.login(security) for each in libraries}
        self._made: list[AdaptedProducer[Any] | AdaptedConsumer[Any]] = []
        self.name = " and ".join(each.name for each in libraries)
        self.lacks = {what: why for each in libraries for what, why in each.lacks.items()}
        self.protocols = [name for name in library.protocols if all(name in each.protocols for each in libraries)]

    def name_of(self, process: int) -> str:
        """The library that makes this process's client, with its version."""
        return self._library.of(process).name

    def producer(self, process: int, transactional_id: str | None = None) -> AdaptedProducer[Any]:
        """Make a producer and remember it, so that it is closed."""
        library = self._library.of(process)
        configuration = library.producer_configuration(self._settings, self.bootstrap, process, transactional_id)
        producer = library.producer(self._clock, configuration | self._logins[library.name])
        self._made.append(producer)
        return producer

    def consumer(
        self, process: int, membership: Membership | None = None, isolation: IsolationLevel = "read_uncommitted"
    ) -> AdaptedConsumer[Any]:
        """Make a consumer and remember it, so that it is closed."""
        if membership is not None and membership.protocol not in self.protocols:
            raise ValueError(f"{self.name} does not know the group protocol {membership.protocol!r} (KIP-848)")
        library = self._library.of(process)
        configuration = library.consumer_configuration(self._settings, self.bootstrap, process, membership, isolation)
        consumer = library.consumer(self._clock, configuration | self._logins[library.name], membership)
        self._made.append(consumer)
        return consumer

    def effective_configuration(self) -> dict[str, Configuration]:
        """The settings that the library really works with by role, with its defaults; names are those of process 0.

        Of the libraries that take turns with it their names only.
        """
        library, settings, bootstrap = self._library, self._settings, self.bootstrap
        chosen = {
            "producer": library.producer_configuration(settings, bootstrap, 0, None),
            "consumer": library.consumer_configuration(settings, bootstrap, 0, None, "read_uncommitted"),
        }
        beside: Configuration = {"libraries in turn": self.name} if library.beside else {}
        return {
            role: _writable({**library.defaults[role], **own, **self._login_written, **beside})
            for role, own in chosen.items()
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
