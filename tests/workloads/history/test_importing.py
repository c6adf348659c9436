"""A file of JSON lines that is decoded in splits becomes what it becomes in one piece."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checkers.history_strategies import histories
from tests.workloads.history.event_strategies import events, examples
from tests.workloads.history.test_sealing import stored
from workloads.history import HistoryError, importing
from workloads.history.exporting import line_of
from workloads.history.files import CLUSTERED
from workloads.history.importing import Decoded, Split, import_jsonl
from workloads.history.origin import ORIGIN_FILE, Origin

#: As foreign tools have them: values that are no numbers, processes without a name, indexes of their own.
changes = st.fixed_dictionaries(
    {},
    optional={
        "process": st.sampled_from([None, "nemesis", 1]),
        "index": st.integers(0, 99),
        "f": st.sampled_from(["debug", "crash"]),
    },
)


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    written = []
    history = draw(st.one_of(events(), histories(operations_max=8)))
    texts, bare, odd = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    for event in history:
        line = line_of(event, Origin())
        if texts:
            line["value"] = _with_texts(line["value"])
        if bare:
            del line["index"]
        if odd and draw(st.integers(0, 5)) == 0:
            line |= draw(changes)
        written.append(msgspec.json.encode(line).decode())
        if draw(st.integers(0, 9)) == 0:
            written.append("")
    return written


def _with_texts(value: Any) -> Any:
    """Values of sends and of what was read as texts."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [_with_texts(part) for part in value]
    match value:
        case ["send", key, [offset, number]]:
            return ["send", key, [offset, f"v{number}"]]
        case ["send", key, number]:
            return ["send", key, f"v{number}"]
        case ["poll", dict() as records]:
            changed = {key: [[r[0], f"v{r[1]}", *r[2:]] if r[1] >= 0 else r for r in rs] for key, rs in records.items()}
            return ["poll", changed]
    return value


@given(lines(), st.integers(1, 12))
@examples(12)
def test_splits_become_what_the_whole_becomes(given_lines: list[str], splits: int) -> None:
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patched:
        source = Path(scratch, "h.jsonl")
        source.write_text("".join(f"{line}\n" for line in given_lines))
        import_jsonl(source, Path(scratch, "whole"))
        patched.setattr(importing, "SPLIT_BYTES", max(1, source.stat().st_size // splits))
        import_jsonl(source, Path(scratch, "cut"))
        whole, cut = ({file.name: file for file in Path(scratch, name).iterdir()} for name in ("whole", "cut"))
        assert stored(cut[CLUSTERED]) == stored(whole[CLUSTERED])
        assert cut[ORIGIN_FILE].read_bytes() == whole[ORIGIN_FILE].read_bytes()
        assert set(cut) == {CLUSTERED, ORIGIN_FILE}


def operation(process: int, kind: str, value: int, function: str = "send") -> str:
    return json.dumps({"process": process, "type": kind, "f": function, "value": [["send", "x", value]], "time": value})


@pytest.mark.parametrize("split_bytes", [30, 90, 200, 10_000])
def test_the_first_line_that_cannot_be_understood_is_named_whatever_the_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    monkeypatch.setattr(importing, "SPLIT_BYTES", split_bytes)
    good = [operation(0, kind, value) for value in range(10) for kind in ("invoke", "ok")]
    source = tmp_path / "h.jsonl"
    source.write_text("\n".join(['{"options": {"ww_deps": false}}', *good, "", "[1]", *good, "{"]))
    with pytest.raises(HistoryError, match=r"h\.jsonl, line 23: not an operation"):
        import_jsonl(source, tmp_path / "stored")
    source.write_text("\n".join(['{"options": {"ww_deps": false}}', *good]))
    assert import_jsonl(source, tmp_path / "stored").options == {"ww_deps": False}


@given(st.permutations(range(5)), st.integers(120, 900))
@examples(8)
def test_operations_that_end_after_their_process_went_on_are_found_a_split_at_a_time(
    late: list[int], split_bytes: int
) -> None:
    """Five sends are completed only splits later, and two answers fit nothing: what they end is a matter of order."""
    begun = [operation(0, "invoke", value) for value in range(7)]
    usual = [operation(0, kind, value) for value in range(10, 22) for kind in ("invoke", "ok")]
    ended = [line for value in late for line in (operation(0, "invoke", 30 + value), operation(0, "ok", value))]
    odd = [operation(0, "ok", value) for value in (90, 91)]
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patched:
        source = Path(scratch, "h.jsonl")
        source.write_text("\n".join([*begun, *usual, *ended, *odd]))
        import_jsonl(source, Path(scratch, "whole"))
        patched.setattr(importing, "SPLIT_BYTES", split_bytes)
        read: list[Split] = []
        blocks = importing._blocks

        def noted(split: Split) -> Iterable[list[bytes]]:
            read.append(split)
            return blocks(split)

        patched.setattr(importing, "_blocks", noted)
        import_jsonl(source, Path(scratch, "cut"))
        assert max(split.end - split.begin for split in read) <= split_bytes
        assert stored(Path(scratch, "cut", CLUSTERED)) == stored(Path(scratch, "whole", CLUSTERED))


def test_a_small_file_is_decoded_where_it_is(tmp_path: Path) -> None:
    source = tmp_path / "h.jsonl"
    source.write_text(operation(0, "ok", 1))

    def decode_all(_: Sequence[Split]) -> Iterable[Decoded]:
        raise AssertionError

    import_jsonl(source, tmp_path / "stored", decode_all)
