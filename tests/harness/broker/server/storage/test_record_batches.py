import pytest
from batch_maker import batch, records

from harness.broker.server.storage.batches import (
    CorruptBatchError,
    OldFormatError,
    encoded,
    max_timestamp_ms,
    parse,
    parse_incoming,
    split,
    whole,
)


def test_a_batch_keeps_its_checksum_when_offset_and_epoch_are_rewritten():
    given = batch(1234, 3, epoch=7)
    stored = parse(whole(given), verify=True)
    assert (stored.base_offset, stored.leader_epoch, stored.count) == (1234, 7, 3)
    assert whole(given)[16:] == given.records[16:]
    assert b"".join(encoded(given)) == whole(given)


def test_a_producers_identity_and_times_are_read_from_the_header():
    incoming = parse_incoming(records(4, producer=(77, 2, 9)))
    assert (incoming.producer_id, incoming.producer_epoch, incoming.base_sequence, incoming.count) == (77, 2, 9, 4)
    assert max_timestamp_ms(incoming) == 1003


def test_every_flipped_byte_after_the_epoch_is_noticed():
    good = records(2)
    for position in range(16, len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x40
        with pytest.raises((CorruptBatchError, OldFormatError)):
            parse(bytes(bad), verify=True)


@pytest.mark.parametrize("size", [0, 1, 16, 17, 60, 70])
def test_a_short_batch_is_refused(size):
    with pytest.raises(CorruptBatchError):
        parse(records(1)[:size], verify=True)


def test_two_batches_in_one_produce_request_are_refused():
    with pytest.raises(CorruptBatchError, match="says"):
        parse_incoming(records(1) + records(1))
    with pytest.raises(CorruptBatchError, match="without records"):
        parse_incoming(b"")


def test_message_format_1_is_refused_with_advice():
    old = bytearray(records(1))
    old[16] = 1
    with pytest.raises(OldFormatError, match="format 2"):
        parse_incoming(bytes(old))


def test_a_cut_off_last_batch_of_a_response_is_left_out():
    both = whole(batch(0, 2)) + whole(batch(2, 1))
    assert [b.base_offset for b in split(both, verify=True)] == [0, 2]
    for size in range(len(whole(batch(0, 2))), len(both)):
        assert [b.base_offset for b in split(both[:size], verify=True)] == [0]
