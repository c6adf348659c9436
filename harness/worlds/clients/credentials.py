"""Reads and checks the files and the password that a plan names for a secured cluster."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.errors import AccessError
from harness.plan import Security

#: Every password that was read; no text that is written may have one.
_READ: Final[set[str]] = set()


def at_home(security: Security) -> Security:
    """``security`` with every ``~`` replaced by this user's home.

    Raises:
        AccessError: the home is not known.
    """
    try:
        files = {name: str(Path(file).expanduser()) for name, file in security.files().items()}
    except RuntimeError as error:
        raise AccessError("the home of this user (~) is not known; set HOME, or write whole paths") from error
    return msgspec.structs.replace(security, **files)


def password_of(security: Security) -> str:
    """The password, as it is now.

    Raises:
        AccessError: the variable is not set, the file cannot be read, or the value is empty or not text.
    """
    user = security.username
    if security.password_env:
        password, where = os.environ.get(security.password_env), f"the environment variable {security.password_env}"
        if password is None:
            raise AccessError(f"{where} is not set; it must have the password of {user}")
    else:
        password, where = _text(security.password_file, "password_file").rstrip("\r\n"), security.password_file
    if not password:
        raise AccessError(f"{where} is empty; it must have the password of {user}")
    if not _can_be_sent(password):
        raise AccessError(f"{where} is not text in UTF-8 without NUL characters; set a password that is")
    _READ.add(password)
    return password


def without_secrets(text: str) -> str:
    """``text`` without the passwords that this process has read: a broker or a library may repeat them in an error."""
    for secret in sorted(_READ, key=len, reverse=True):  # one may begin another
        text = text.replace(secret, "(password)")
    return text


def require_credentials(security: Security) -> None:
    """Refuse files and passwords that are missing or do not fit together; no network is used.

    Raises:
        AccessError: one must be corrected.
    """
    here = at_home(security)
    if here.authenticates:
        password_of(here)
    if here.encrypts:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _trust(context, here.ca)
        _present(context, here.certificate, here.key)


def _trust(context: ssl.SSLContext, ca: str) -> None:
    if not ca:
        return
    _text(ca, "ca")
    try:
        context.load_verify_locations(ca)
    except ssl.SSLError as error:
        raise AccessError(
            f"ca = {ca} has no certificate in PEM ({error.reason or error}); name a file that has"
        ) from error


def _present(context: ssl.SSLContext, certificate: str, key: str) -> None:
    if not certificate:
        return
    _text(certificate, "certificate")
    if key:
        _text(key, "key")
    try:
        context.load_cert_chain(certificate, key or None, _no_passphrase)
    except ssl.SSLError as error:
        raise AccessError(
            f"certificate = {certificate} and key = {key or certificate} are not a certificate and its private key in "
            f"PEM ({error.reason or error}); name files that belong together"
        ) from error


def _no_passphrase() -> str:
    """Refuse a key with a passphrase; without this function OpenSSL would ask at the terminal."""
    raise AccessError("the client's private key has a passphrase; name a key without one")


def _can_be_sent(password: str) -> bool:
    """Refuse surrogates, which are bytes that are not UTF-8, and NUL, which ends a string in SASL PLAIN and in C."""
    return "\0" not in password and not any("\ud800" <= character <= "\udfff" for character in password)


def _text(file: str, key: str) -> str:
    """Read a regular file; reading a pipe could wait without limit, and it is empty the second time."""
    try:
        if not stat.S_ISREG(Path(file).stat().st_mode):
            raise AccessError(f"{key} = {file} is not a regular file; name a regular file")
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise AccessError(f"{key} = {file} cannot be read ({error.strerror}); name a file that can") from error
    except UnicodeDecodeError as error:
        raise AccessError(f"{key} = {file} is not text in UTF-8; name a file that is") from error
