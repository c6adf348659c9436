import struct
import zlib

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from workloads.operations import PayloadDefect
from workloads.values import NO_VALUE, PROCESS_MAX, SEQUENCE_MAX, decode, encode, join, split

processes = st.integers(0, PROCESS_MAX)
sequences = st.integers(0, SEQUENCE_MAX)
keys = st.binary(max_size=20)
#: Bytes of a payload for which compression is of interest.
MANY = 100_000
names = st.text(max_size=30)


@given(names, keys, processes, sequences, st.integers(0, 200))
def test_a_payload_tells_its_writer_whatever_its_size(partition, key, process, sequence, size_bytes):
    payload = encode(partition, key, join(process, sequence), size_bytes)
    assert len(payload) >= size_bytes
    value, defect = decode(payload, partition, key)
    assert (split(value), defect) == ((process, sequence), PayloadDefect.NONE)


def test_the_largest_value_fits_a_signed_64_bit_integer():
    assert join(PROCESS_MAX, SEQUENCE_MAX) == 2**63 - 1


@pytest.mark.parametrize(("process", "sequence"), [(-1, 0), (0, -1), (PROCESS_MAX + 1, 0), (0, SEQUENCE_MAX + 1)])
def test_a_writer_that_does_not_fit_is_refused(process, sequence):
    with pytest.raises(ValueError, match="does not fit"):
        join(process, sequence)


def test_every_flipped_bit_breaks_the_checksum():
    payload = encode("t-0", b"key-3", join(7, 42), 60)
    for bit in range(len(payload) * 8):
        damaged = bytearray(payload)
        damaged[bit // 8] ^= 1 << bit % 8
        assert decode(bytes(damaged), "t-0", b"key-3") == (NO_VALUE, PayloadDefect.CHECKSUM)


def test_a_record_in_another_partition_is_known_by_its_value():
    assert decode(encode("t-0", b"k", join(7, 42)), "t-1", b"k") == (join(7, 42), PayloadDefect.WRONG_PARTITION)


def test_a_record_under_another_key_is_known_by_its_value():
    assert decode(encode("t-0", b"k", join(7, 42)), "t-0", b"l") == (join(7, 42), PayloadDefect.WRONG_KEY)


def test_partition_and_key_do_not_run_into_each_other():
    assert decode(encode("t-1", b"2k", 0), "t-12", b"k")[1] is PayloadDefect.WRONG_PARTITION


@given(st.binary(max_size=15))
def test_a_payload_shorter_than_its_header_is_unreadable(payload):
    assert decode(payload, "t-0", b"k") == (NO_VALUE, PayloadDefect.UNREADABLE)


def test_lengths_that_contradict_the_size_are_unreadable():
    body = struct.pack(">QHH", 1, 60_000, 1) + b"xx"
    assert decode(struct.pack(">I", crc32c(body)) + body, "xx", b"")[1] is PayloadDefect.UNREADABLE


def test_a_payload_of_a_megabyte_has_its_size_and_every_byte_of_it_counts():
    payload = encode("t.2-19", b"key-7", join(3, 5), 1_000_000)
    assert len(payload) == 1_000_000
    damaged = payload[:-1] + bytes([payload[-1] ^ 1])
    assert decode(payload, "t.2-19", b"key-7") == (join(3, 5), PayloadDefect.NONE)
    assert decode(damaged, "t.2-19", b"key-7") == (NO_VALUE, PayloadDefect.CHECKSUM)


def test_a_codec_makes_payloads_about_half_as_long_and_many_no_shorter_than_that():
    payloads = [encode("t-0", b"key-0", join(process, 0), MANY) for process in range(8)]
    assert 0.4 < len(zlib.compress(payloads[0])) / MANY < 0.65
    together = zlib.compress(b"".join(payloads))
    assert 0.4 < len(together) / (8 * MANY) < 0.65


def test_a_long_filling_is_made_of_many_short_ones():
    assert len(encode("t-0", b"", join(0, 1), 5_000_000)) == 5_000_000
