"""What a cluster that exists already demands of those who speak to it: TLS, SASL, and where the password is.

The password itself is nowhere but in an environment variable or a file of the user's: whatever is written down, the
journal of undo deeds included, has the name of it. It is read when clients are made.
"""

from __future__ import annotations

import os
import ssl
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from harness.errors import HostError

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class Security(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to be let in. Each library's own module turns it into that library's properties.

    Attributes:
        protocol: of the listener, under Kafka's name.
        ca: the file of certificates, in PEM, that vouch for the brokers'; empty: those that the system trusts.
        certificate: the client's own, in PEM, for brokers that want one; its chain may follow.
        key: its private key, in PEM and without a passphrase; empty: it stands in the certificate's file.
        mechanism, username: for SASL.
        password_env: the name of the environment variable that has the password,
        password_file: or the file whose text it is, but for the end of the line.
    """

    protocol: Protocol = "PLAINTEXT"
    ca: str = ""
    certificate: str = ""
    key: str = ""
    mechanism: Mechanism | Literal[""] = ""
    username: str = ""
    password_env: str = ""
    password_file: str = ""

    @property
    def encrypts(self) -> bool:
        """Whether the listener speaks TLS."""
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def authenticates(self) -> bool:
        """Whether the listener wants a user and a password."""
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    def at_home(self) -> Security:
        """The same with every ``~`` replaced by this user's home.

        Raises:
            HostError: nobody knows where that is.
        """
        files = {name: getattr(self, name) for name in FILES}
        try:
            there = {name: str(Path(file).expanduser()) for name, file in files.items() if file}
        except RuntimeError as error:
            raise HostError("nobody knows this user's home (~); set HOME, or write whole paths") from error
        return msgspec.structs.replace(self, **there)

    def password(self) -> str:
        """The password, as it is now.

        Raises:
            HostError: the variable is not set, the file cannot be read, it is empty, or no text.
        """
        if self.password_env:
            found, where = os.environ.get(self.password_env), f"the environment variable {self.password_env}"
            if found is None:
                raise HostError(f"{where} is not set; it must have the password of {self.username}")
        else:
            found, where = _text(self.password_file, "password_file").rstrip("\r\n"), self.password_file
        if not found:
            raise HostError(f"{where} is empty; it must have the password of {self.username}")
        if not _can_be_sent(found):
            raise HostError(f"{where} is no text in UTF-8 without NUL; no password is anything else")
        return found

    def check(self) -> None:
        """Whether all that is named is there and fits together; no network is used.

        Raises:
            HostError: with what to mend.
        """
        here = self.at_home()
        if here.authenticates:
            here.password()
        if here.encrypts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            _trust(context, here.ca)
            _present(context, here.certificate, here.key)


#: What is asked of nobody: the clusters that the harness makes itself.
OPEN: Final = Security()
#: The keys that name files.
FILES: Final = ("ca", "certificate", "key", "password_file")


def security_in(facts: Mapping[str, Any]) -> Security:
    """What a deed of the journal says, under ``security``.

    Raises:
        ValueError: it is nothing that a harness writes.
    """
    try:
        return msgspec.convert(facts.get("security", {}), Security)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def _trust(context: ssl.SSLContext, ca: str) -> None:
    if not ca:
        return
    _text(ca, "ca")
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError as error:
        raise HostError(f"ca = {ca} has no certificate in PEM ({error.reason or error}); name one that has") from error


def _present(context: ssl.SSLContext, certificate: str, key: str) -> None:
    if not certificate:
        return
    _text(certificate, "certificate")
    if key:
        _text(key, "key")
    try:
        context.load_cert_chain(certificate, key or None, _no_passphrase)
    except ssl.SSLError as error:
        raise HostError(
            f"certificate = {certificate} and key = {key or certificate} are no certificate in PEM with its private "
            f"key ({error.reason or error}); name files that are"
        ) from error


def _no_passphrase() -> str:
    """Asked for by OpenSSL; without this function it would ask at the terminal."""
    raise HostError("the client's private key has a passphrase; name a key without one")


def _can_be_sent(password: str) -> bool:
    """Bytes of the environment that are no UTF-8 are surrogates here; NUL ends a string in SASL PLAIN and in C."""
    return "\0" not in password and not any("\ud800" <= character <= "\udfff" for character in password)


def _text(file: str, key: str) -> str:
    """A pipe would be waited for without limit, and is empty the second time."""
    try:
        if not stat.S_ISREG(Path(file).stat().st_mode):
            raise HostError(f"{key} = {file} is no regular file; name one")
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise HostError(f"{key} = {file} cannot be read ({error.strerror}); name a file that can") from error
    except UnicodeDecodeError as error:
        raise HostError(f"{key} = {file} is no text in UTF-8; name one that is") from error
