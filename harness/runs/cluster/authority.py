"""Certificates of a cluster to play with, in PEM, which Kafka reads since 2.7 (KIP-651)."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: Certificates are valid from this long ago, for clocks that differ, to this long from now.
VALID: Final = datetime.timedelta(days=1)


class Authority:
    """Signs certificates into ``directory``; its own is ``file``."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        own = _certificate(self._name, self._name, self._key.public_key())
        signed = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file: Final = directory / f"{name}.pem"
        self.file.write_bytes(self._signed(signed))

    def sign(self, name: str, *addresses: str) -> Path:
        """The file of a new certificate, for a server at these IP addresses if there are any, with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        asked = _certificate(_name(name), self._name, key.public_key())
        if addresses:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(each)) for each in addresses])
            asked = asked.add_extension(names, critical=False)
        file = self._directory / f"{name}.pem"
        file.write_bytes(in_pem(key) + self._signed(asked))
        return file

    def _signed(self, asked: x509.CertificateBuilder) -> bytes:
        return asked.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def in_pem(key: ec.EllipticCurvePrivateKey, passphrase: str = "") -> bytes:
    """A private key as text, locked if there is a passphrase."""
    how = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
    )
