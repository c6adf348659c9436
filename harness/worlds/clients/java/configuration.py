"""The properties that log Kafka's Java client in, and their form in Java."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness.plan import Security
from harness.worlds.clients.programs.configuration import PASSWORD

#: A name of the harness's own, from which :func:`for_java` makes ``sasl.jaas.config``.
USERNAME: Final = "sasl.username"
#: The same of a certificate whose private key is in another file; Java takes both as one text.
_CERTIFICATE: Final = "ssl.certificate.location"
_KEY: Final = "ssl.key.location"


def security_properties(security: Security) -> dict[str, object]:
    """The properties that log a client in, without the password, so that files may have them."""
    properties: dict[str, object] = {"security.protocol": security.protocol}
    if security.encrypts:
        properties["ssl.endpoint.identification.algorithm"] = "https"
    if security.ca:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca}
    if security.certificate:
        properties |= {
            "ssl.keystore.type": "PEM",
            _CERTIFICATE: security.certificate,
            _KEY: security.key or security.certificate,
        }
    if security.authenticates:
        properties |= {"sasl.mechanism": security.mechanism, USERNAME: security.username}
    return properties


def for_java(configured: Mapping[str, object]) -> dict[str, object]:
    """Put the names of the harness's own into Java's form; the result has secrets."""
    properties = dict(configured)
    if certificate := properties.pop(_CERTIFICATE, None):
        chain, key = (Path(str(file)).read_text(encoding="utf-8") for file in (certificate, properties.pop(_KEY)))
        properties |= {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    if username := properties.pop(USERNAME, None):
        properties["sasl.jaas.config"] = _jaas(
            *map(str, (properties["sasl.mechanism"], username, properties.pop(PASSWORD, "")))
        )
    return properties


def _jaas(mechanism: str, username: str, password: str) -> str:
    """The login module of a mechanism, as Java's configuration of logins spells it (JAAS)."""
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    module = f"org.apache.kafka.common.security.{kind}LoginModule"
    return f'{module} required username="{_quoted(username)}" password="{_quoted(password)}";'


def _quoted(value: str) -> str:
    """A text within quotes; Java reads it with a StreamTokenizer, to which a backslash means what follows."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
