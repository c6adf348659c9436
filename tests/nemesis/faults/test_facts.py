"""The facts about every kind of fault, and that the registry has all of them."""

from pathlib import Path

import pytest

from nemesis import faults
from nemesis.faults import FAULTS, KINDS, Fault, FaultKind, fault_kind

#: As receipts of 0.1.0 name them; a fault may be added, and none may be renamed.
RECORDED = {
    "kill", "pause", "stop", "powerloss", "wipedisk", "corruptrecord", "fulldisk", "slowdisk", "slowlink", "partition",
    "moveleader", "reassign", "clockstep", "died", "unasked",
}  # fmt: skip


def kinds_with(fact: str) -> set[str]:
    return {name for name, kind in KINDS.items() if getattr(kind, fact) and name in RECORDED}


def test_every_kind_that_a_receipt_may_name_is_registered() -> None:
    assert set(KINDS) >= RECORDED


def test_every_file_of_the_folder_has_a_fault_in_the_registry() -> None:
    folder = Path(faults.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "fault"}
    assert {kind.__module__.rpartition(".")[2] for kind in KINDS.values()} == files


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_ends_processes_counts_against_the_budget_of_dead_brokers(fault: type[Fault]) -> None:
    assert fault.stops_brokers or not fault.ends_process


@pytest.mark.parametrize("fault", FAULTS)
def test_a_schedule_and_a_receipt_call_a_fault_the_same(fault: type[Fault]) -> None:
    assert fault.__struct_config__.tag == fault.kind


def test_who_may_have_lost_what_is_as_it_was_in_0_1_0() -> None:
    assert kinds_with("destroys_copy") == {"powerloss", "wipedisk", "corruptrecord"}
    assert kinds_with("spares_process") == {"partition", "pause", "slowlink", "slowdisk", "moveleader"}
    assert kinds_with("ends_process") == {"kill", "powerloss", "wipedisk", "corruptrecord", "died"}
    assert kinds_with("may_end_process") == {
        "fulldisk", "slowdisk", "corruptrecord", "wipedisk", "powerloss", "clockstep",
    }  # fmt: skip
    assert kinds_with("spares_flushed") == {"powerloss"}
    assert kinds_with("replaces_replica") == {"reassign"}


def test_a_kind_of_a_later_version_has_the_careful_defaults() -> None:
    assert fault_kind("not yet known") is FaultKind
    assert not FaultKind.spares_process


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.shows or fault.shows_at_end])
def test_what_came_to_less_came_to_a_kind_that_is_known(fault: type[Fault]) -> None:
    assert fault.degraded_to in KINDS
