"""Clients of several libraries in one run: each process has the one whose turn it is, and the record names them all."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.ground.errors import HostError
from harness.worlds.clients import CONFLUENT, KAFKA_PYTHON, ClientLibrary
from workloads import Membership, Settings


def named(library: ClientLibrary, name: str) -> ClientLibrary:
    """The library, whose clients are only configurations with its name."""
    return replace(
        library,
        name=name,
        producer=lambda _, configuration: SimpleNamespace(library=name, **_plain(configuration)),  # type: ignore[arg-type,return-value]
        consumer=lambda _, configuration, __: SimpleNamespace(library=name, **_plain(configuration)),  # type: ignore[arg-type,return-value]
    )


def _plain(configuration: Any) -> dict[str, Any]:
    return {"configured": sorted(configuration)}


def clients(*libraries: ClientLibrary, racks: tuple[str, ...] = ()) -> Any:
    nobody: Any = None
    first, *others = libraries
    return first.taking_turns(others).clients(nobody, Settings(), ["b:1"], racks=racks)


OLD, NEW = named(KAFKA_PYTHON, "old"), named(CONFLUENT, "new")


def test_processes_have_the_libraries_in_turn_each_configured_in_its_own_words() -> None:
    made = clients(OLD, NEW, racks=("a", "b"))
    producers = [made.producer(process) for process in range(4)]
    consumers = [made.consumer(process) for process in range(4)]
    assert [client.library for client in producers] == [client.library for client in consumers] == ["old", "new"] * 2
    assert "bootstrap_servers" in producers[0].configured
    assert "bootstrap.servers" in producers[1].configured
    assert {OLD.rack in consumers[0].configured, NEW.rack in consumers[1].configured} == {True}


def test_the_record_names_them_all() -> None:
    made = clients(OLD, NEW)
    assert made.name == "old and new"
    assert [made.name_of(process) for process in range(3)] == ["old", "new", "old"]
    assert made.effective_configuration()["producer"]["libraries in turn"] == "old and new"
    assert "libraries in turn" not in clients(OLD).effective_configuration()["producer"]


def test_they_can_do_what_each_of_them_can() -> None:
    plain, able = replace(OLD, protocols=("classic",)), replace(NEW, protocols=("classic", "consumer"))
    made = clients(able, plain)
    assert list(made.protocols) == ["classic"]
    with pytest.raises(ValueError, match="does not know the group protocol"):
        made.consumer(0, Membership(group="g", protocol="consumer"))


def test_one_that_is_unfit_is_refused() -> None:
    with pytest.raises(HostError, match="too old"):
        clients(OLD, replace(NEW, unfit="too old"))
