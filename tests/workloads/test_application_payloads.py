"""Inputs of applications carry ids that are known again, wherever an output has them."""

from __future__ import annotations

import msgspec
import pytest

from workloads import finder, number_of
from workloads.application_payloads import InputId, Template, id_of, input_of
from workloads.client import Fetched
from workloads.operations import PayloadDefect

ID = id_of("orders-0", 77)


def output(payload: bytes = b"", key: bytes = b"", **headers: bytes) -> Fetched:
    return Fetched("out-0", 5, key, payload, headers=tuple(headers.items()))


def test_an_id_names_its_input_and_a_text_that_is_like_one_names_none() -> None:
    assert input_of(ID) == InputId("orders-0", 77)
    assert [input_of(text) for text in ("", "orders-0/77", ID[:-1] + "x", ID.replace("77", "78"), f" {ID}")] == [
        None
    ] * 5


@pytest.mark.parametrize(
    "text", ['{"id": "{id}", "key": "{key}", "number": {number}}', "{number};{key};{id}", "<order no='{id}'/>", "{id}"]
)
def test_a_payload_of_any_template_is_read_back_and_one_that_was_changed_is_not_sound(text: str) -> None:
    template = Template(text)
    payload = template.payload("orders-0", b"key-3", 77)
    assert template.decode(payload, "orders-0", b"key-3") == (77, PayloadDefect.NONE)
    assert template.decode(payload, "orders-1", b"key-3") == (77, PayloadDefect.WRONG_PARTITION)
    assert template.decode(payload[:-1] + b"?", "orders-0", b"key-3")[1] is not PayloadDefect.NONE
    assert template.decode(b"\xff", "orders-0", b"key-3") == (-1, PayloadDefect.UNREADABLE)


def test_the_number_of_an_input_follows_from_it_and_is_below_a_thousand() -> None:
    numbers = {number_of(value) for value in range(5_000)}
    assert numbers == set(range(1_000))


@pytest.mark.parametrize(
    ("where", "made"),
    [
        ("key", output(key=ID.encode())),
        ("header:id", output(id=ID.encode())),
        ("json:/id", output(msgspec.json.encode({"id": ID}))),
        ("json:/orders/1/id", output(msgspec.json.encode({"orders": [{}, {"id": ID}]}))),
        ("regex:order=(\\S+)", output(f"time=3 order={ID} sum=9".encode())),
        ("regex:[^ ]+/[0-9a-f]{8}", output(f"done: {ID}".encode())),
    ],
)
def test_an_id_is_found_where_the_plan_says(where: str, made: Fetched) -> None:
    assert finder(where)(made) == ID


@pytest.mark.parametrize("where", ["header:id", "json:/id", "json:/a/b", "json:/0", "regex:order=(.+)"])
@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"id": [7]}', b"\xff\xfe", b"[" * 100_000])
def test_an_output_without_an_id_has_none(where: str, payload: bytes) -> None:
    assert finder(where)(output(payload)) is None


@pytest.mark.parametrize("where", ["", "id", "header:", "json:id", "regex:(", "value"])
def test_a_place_that_is_none_is_refused_with_what_to_write(where: str) -> None:
    with pytest.raises(ValueError, match=r"write|header|slash|regular expression"):
        finder(where)
