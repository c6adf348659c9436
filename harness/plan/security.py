"""TLS and SASL for a cluster that exists already, from the table ``[worlds.kafka.security]``.

The password itself is only in an environment variable or a file of the user's. Everything that the harness writes, the
journal of undo actions included, has the name of it. It is read when clients are made
(harness.worlds.clients.credentials).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Final, Literal

import msgspec

from harness.plan.values import Only, PlanKey, ReadBy, of_kind, record_of, refuse_pointless, table_of
from workloads import shown

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def _text(fits: Callable[[str], object], problem: str, *, quoted: bool = True) -> ReadBy:
    """A string that is not empty and ``fits``. One that may be the password by mistake is not quoted."""

    def by(value: object, plan_key: PlanKey) -> str:
        if quoted:
            of_kind(value, str, plan_key)
        if not value or not isinstance(value, str):
            raise plan_key.wrong("takes a string that is not empty; write one, or leave the key out")
        if not fits(value):
            raise plan_key.wrong(f"{problem}, not {shown(value)}" if quoted else problem)
        return value

    return ReadBy(by)


#: A run's directory is looked at, and healed, from anywhere.
_IS_FILE: Final = re.compile(r"(/|~/)[^\0\n]+").fullmatch
_ABSOLUTE: Final = 'takes an absolute path like "/etc/kafka/ca.pem", or one that begins with "~/"'
_FILE: Final = _text(_IS_FILE, _ABSOLUTE)
_USER: Final = _text(str.isprintable, "takes the name of a user")
_SECRET_FILE: Final = _text(_IS_FILE, _ABSOLUTE, quoted=False)
_SECRET_VARIABLE: Final = _text(
    re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch,
    "takes the name of an environment variable: letters, digits and _",
    quoted=False,
)
_MECHANISM: Final = ReadBy(lambda value, plan_key: of_kind(value, Mechanism, plan_key))
_TLS: Final = Only(
    lambda security: security.encrypts, 'this is for TLS: write protocol = "SSL" or "SASL_SSL", or leave it out'
)
_SASL: Final = Only(
    lambda security: security.authenticates,
    'this is for SASL: write protocol = "SASL_SSL" or "SASL_PLAINTEXT", or leave it out',
)


class Security(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Identifies clients to a cluster. The module of each client library makes properties of it."""

    protocol: Protocol = "PLAINTEXT"
    """The protocol of the listener, under Kafka's name."""
    ca: Annotated[str, _TLS, _FILE] = ""
    """The file of certificates, in PEM, that vouch for the brokers'; by default those that the system trusts."""
    certificate: Annotated[str, _TLS, _FILE] = ""
    """The file of the client's own certificate, in PEM, for brokers that want one; its chain may follow."""
    key: Annotated[str, _TLS, _FILE] = ""
    """The file of its private key, in PEM and without a passphrase; by default the file of the certificate has it."""
    mechanism: Annotated[Mechanism | Literal[""], _SASL, _MECHANISM] = ""
    """The mechanism of SASL."""
    username: Annotated[str, _SASL, _USER] = ""
    """The user of SASL."""
    password_env: Annotated[str, _SASL, _SECRET_VARIABLE] = ""
    """The name of the environment variable that has the password."""
    password_file: Annotated[str, _SASL, _SECRET_FILE] = ""
    """Or the file whose text it is, without the end of the line."""

    @property
    def encrypts(self) -> bool:
        """True of a listener that speaks TLS."""
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def authenticates(self) -> bool:
        """True of a listener that wants a user and a password (SASL)."""
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    def files(self) -> dict[str, str]:
        """The files that are named, by key."""
        return {key: file for key in FILES if (file := getattr(self, key))}


#: Clusters that the harness makes itself ask for nothing.
OPEN: Final = Security()
#: The keys that name files.
FILES: Final = ("ca", "certificate", "key", "password_file")


def security_of(value: object, plan_key: PlanKey) -> Security:
    """The table ``security`` of a world's table. Files and variables are not looked at (Security.check)."""
    table = table_of(value, plan_key)
    if "password" in table:
        raise (plan_key / "password").wrong(
            "a password has no place in a plan; put it in an environment variable or a file, and name that under "
            "password_env or password_file"
        )
    security = record_of(Security, table, plan_key)
    refuse_pointless(Security, table, security, plan_key)
    if security.key and not security.certificate:
        raise (plan_key / "key").wrong("a private key is for a client's certificate; name that too, or leave it out")
    if not security.authenticates:
        return security
    if missing := [key for key in ("mechanism", "username") if key not in table]:
        raise plan_key.wrong(f"protocol = {shown(security.protocol)} needs {' and '.join(missing)}; add them")
    if bool(security.password_env) == bool(security.password_file):
        raise plan_key.wrong(
            f"protocol = {shown(security.protocol)} needs password_env or password_file; write one of the two"
        )
    return security
