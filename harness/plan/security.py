"""TLS and SASL for a cluster that exists already, from the table ``[worlds.kafka.security]``.

The password itself is only in an environment variable or a file of the user's. Everything that the harness writes, the
journal of undo actions included, has the name of it. It is read when clients are made
(harness.worlds.clients.credentials).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from harness.plan.values import PlanKey, Table, known_keys, table_at, value_at
from workloads import shown

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class Security(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Identifies clients to a cluster. The module of each client library makes properties of it."""

    protocol: Protocol = "PLAINTEXT"
    """The protocol of the listener, under Kafka's name."""
    ca: str = ""
    """The file of certificates, in PEM, that vouch for the brokers'; by default those that the system trusts."""
    certificate: str = ""
    """The file of the client's own certificate, in PEM, for brokers that want one; its chain may follow."""
    key: str = ""
    """The file of its private key, in PEM and without a passphrase; by default the file of the certificate has it."""
    mechanism: Mechanism | Literal[""] = ""
    """The mechanism of SASL."""
    username: str = ""
    """The user of SASL."""
    password_env: str = ""
    """The name of the environment variable that has the password."""
    password_file: str = ""
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

_TLS: Final = ("ca", "certificate", "key")
#: No message quotes a value under these keys: it may be the password by mistake.
_PASSWORD: Final = ("password_env", "password_file")
_SASL: Final = ("mechanism", "username", *_PASSWORD)
_KINDS: Final[Mapping[str, object]] = {"protocol": Protocol, "mechanism": Mechanism}
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: A run's directory is looked at, and healed, from anywhere.
_FILE: Final = re.compile(r"(/|~/)[^\0\n]+")
_ABSOLUTE: Final = 'an absolute path like "/etc/kafka/ca.pem", or one that begins with "~/"'


def security_at(table: Table, plan_key: PlanKey) -> Security:
    """The table ``security`` of a world's table. Files and variables are not looked at (Security.check).

    Raises:
        PlanError: something is missing, or two things do not go together.
    """
    here = plan_key / "security"
    own = table_at(table, "security", plan_key)
    if "password" in own:
        raise (here / "password").wrong(
            "a password has no place in a plan; put it in an environment variable or a file, and name that under "
            "password_env or password_file"
        )
    known_keys(own, Security.__struct_fields__, here)
    security = Security(**{key: _value(own, key, here) for key in own})
    _complete(security, own, here)
    return security


def _value(table: Table, key: str, plan_key: PlanKey) -> Any:
    here = plan_key / key
    value = table[key] if key in _PASSWORD else value_at(table, key, _KINDS.get(key, str), "", plan_key)
    if not value or not isinstance(value, str):
        raise here.wrong("takes a string that is not empty; write one, or leave the key out")
    if key == "password_env" and not _VARIABLE.fullmatch(value):
        raise here.wrong("takes the name of an environment variable: letters, digits and _")
    if key == "username" and not value.isprintable():
        raise here.wrong(f"takes the name of a user, not {shown(value)}")
    if key in FILES and not _FILE.fullmatch(value):
        raise here.wrong(f"takes {_ABSOLUTE}" + ("" if key in _PASSWORD else f", not {shown(value)}"))
    return value


def _complete(security: Security, own: Table, plan_key: PlanKey) -> None:
    for keys, wanted, what in (
        (_TLS, security.encrypts, 'TLS: write protocol = "SSL" or "SASL_SSL"'),
        (_SASL, security.authenticates, 'SASL: write protocol = "SASL_SSL" or "SASL_PLAINTEXT"'),
    ):
        given = [key for key in keys if key in own]
        if given and not wanted:
            raise (plan_key / given[0]).wrong(f"this is for {what}, or leave it out")
    if security.key and not security.certificate:
        raise (plan_key / "key").wrong("a private key is for a client's certificate; name that too, or leave it out")
    if not security.authenticates:
        return
    if missing := [key for key in ("mechanism", "username") if key not in own]:
        raise plan_key.wrong(f"protocol = {shown(security.protocol)} needs {' and '.join(missing)}; add them")
    if len([key for key in _PASSWORD if key in own]) != 1:
        raise plan_key.wrong(
            f"protocol = {shown(security.protocol)} needs password_env or password_file; write one of the two"
        )
