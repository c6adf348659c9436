"""Payloads that carry their own address: unique, self-describing, checksummed.

A value is a number, ``process << 40 | sequence``, unique in a run and within int64. Its payload carries the value, the
log partition and the key it was meant for, under a CRC-32C, so that a reader knows a record that was damaged, or
delivered to another partition or under another key (KAFKA-19012), from one that is sound.

Layout, big endian: CRC-32C of the rest (4), value (8), length of partition (2), length of key (2), partition, key, and
filling up to the size that was asked for: digits that a codec makes about half as long, from another place in each
payload, so that records of one batch are not compressed to one.
"""

from __future__ import annotations

import re
import struct
from functools import cache, lru_cache
from random import Random
from typing import Final

from crc32c import crc32c

from workloads.operations import PayloadDefect

#: Sequence numbers of one process fit in 40 bits, processes in the 23 that an int64 leaves beside the sign.
SEQUENCE_BITS: Final = 40
PROCESS_MAX: Final = 2**23 - 1
SEQUENCE_MAX: Final = 2**SEQUENCE_BITS - 1
#: The value of a payload that could not be decoded.
NO_VALUE: Final = -1

#: The keys of workloads.
KEY_NAME: Final = re.compile(r"key-\d{1,9}")
_CRC = struct.Struct(">I")
_VALUE = struct.Struct(">Q")
_LENGTHS = struct.Struct(">HH")
_BODY = struct.Struct(">QHH")
# Looked up once: a member of an enumeration is found by a search before Python 3.12.
_SOUND: Final = PayloadDefect.NONE
_HEADER_BYTES: Final = _CRC.size + _BODY.size
#: Digits among which the filling of a payload begins, and from one value to the next it begins so much later.
_DIGITS: Final = 2**20
_STRIDE: Final = 524_309


def join(process: int, sequence: int) -> int:
    """The value of the ``sequence``-th write of ``process``.

    Raises:
        ValueError: either does not fit.
    """
    if not (0 <= process <= PROCESS_MAX and 0 <= sequence <= SEQUENCE_MAX):
        raise ValueError(f"process {process} or sequence {sequence} does not fit; start a new run")
    return process << SEQUENCE_BITS | sequence


def split(value: int) -> tuple[int, int]:
    """Process and sequence of a value."""
    return value >> SEQUENCE_BITS, value & SEQUENCE_MAX


def record_key_of(key: bytes) -> int:
    """The number of a record's key: 7 of ``key-7``, and one above 2^30 of any other key."""
    name = key.decode(errors="replace")
    return int(name[4:]) if KEY_NAME.fullmatch(name) else 2**30 + crc32c(key) % 2**30


def encode(partition: str, key: bytes, value: int, size_bytes: int = 0) -> bytes:
    """The payload of the write ``value``, meant for ``partition`` ("topic-number") and ``key``.

    It has ``size_bytes``, or as many as it needs if that is more.
    """
    body = _VALUE.pack(value) + _address(partition, key)
    missing = size_bytes - _CRC.size - len(body)
    if missing > 0:
        body += filling(value, missing)
    return _CRC.pack(crc32c(body)) + body


@lru_cache(maxsize=4096)
def _address(partition: str, key: bytes) -> bytes:
    """The bytes between value and filling: the same in every write to a log partition under one key."""
    name = partition.encode()
    return _LENGTHS.pack(len(name), len(key)) + name + key


def filling(value: int, size_bytes: int) -> bytes:
    """The filling of the payload of ``value``."""
    begin = value * _STRIDE % _DIGITS
    digits = _digits()
    whole = digits if begin + size_bytes <= len(digits) else digits * (1 + (begin + size_bytes) // len(digits))
    return whole[begin : begin + size_bytes]


@cache
def _digits() -> bytes:
    """Two payloads of a megabyte in digits, the same in every process."""
    return Random(0).randbytes(_DIGITS).hex().encode()  # noqa: S311 - no secret


def decode(payload: bytes, partition: str, key: bytes) -> tuple[int, PayloadDefect]:
    """The value of a payload that was read from ``partition`` under ``key``, and its defect.

    A payload that is whole but misplaced keeps its value; a damaged one has NO_VALUE. Of the filling only the checksum
    is looked at.
    """
    if len(payload) < _HEADER_BYTES:
        return NO_VALUE, PayloadDefect.UNREADABLE
    body = payload[_CRC.size :]
    if crc32c(body) != _CRC.unpack_from(payload)[0]:
        return NO_VALUE, PayloadDefect.CHECKSUM
    if body.startswith(_address(partition, key), _VALUE.size):
        return _VALUE.unpack_from(body)[0], _SOUND
    return _misplaced(body, partition, key)


def _misplaced(body: bytes, partition: str, key: bytes) -> tuple[int, PayloadDefect]:
    """Decode a ``body`` whose checksum fits and that is another than was expected, see :func:`decode`."""
    value, name_bytes, key_bytes = _BODY.unpack_from(body)
    key_start = _BODY.size + name_bytes
    key_end = key_start + key_bytes
    if key_end > len(body):
        return NO_VALUE, PayloadDefect.UNREADABLE
    if body[_BODY.size : key_start] != partition.encode():
        return value, PayloadDefect.WRONG_PARTITION
    if body[key_start:key_end] != key:
        return value, PayloadDefect.WRONG_KEY
    return value, _SOUND
