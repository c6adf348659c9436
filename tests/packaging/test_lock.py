"""The lock files fit pyproject.toml, are complete, and say of every file which one it must be. Nothing is fetched."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = PROJECT["project"]["dependencies"]
WANTED = {"requirements.lock": RUNTIME, "requirements-dev.lock": [*RUNTIME, *PROJECT["dependency-groups"]["dev"]]}
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def locked(name: str) -> dict[str, tuple[Requirement, int]]:
    """By package: what is locked, and the number of its hashes."""
    entries = (ROOT / name).read_text().replace("\\\n", " ").splitlines()
    packages = {}
    for entry in entries:
        requirement = Requirement(HASH.sub("", entry).strip())
        packages[canonicalize_name(requirement.name)] = requirement, len(HASH.findall(entry))
    return packages


def version_of(requirement: Requirement) -> str:
    (specifier,) = requirement.specifier
    assert specifier.operator == "=="
    return specifier.version


@pytest.mark.parametrize("name", WANTED)
def test_what_the_project_asks_for_is_locked_in_a_version_that_it_takes(name: str) -> None:
    lock = locked(name)
    for text in WANTED[name]:
        wanted = Requirement(text)
        assert canonicalize_name(wanted.name) in lock, f"{text} is not in {name}; make it again: make lock"
        version = version_of(lock[canonicalize_name(wanted.name)][0])
        assert wanted.specifier.contains(version), f"{text} is not {version} of {name}; make it again: make lock"


@pytest.mark.parametrize("name", WANTED)
def test_every_package_is_locked_to_one_version_by_hashes(name: str) -> None:
    for requirement, hashes in locked(name).values():
        assert version_of(requirement)
        assert hashes, requirement


@pytest.mark.parametrize("name", WANTED)
def test_what_packages_depend_on_here_is_locked_too(name: str) -> None:
    lock = locked(name)
    for package, (requirement, _) in lock.items():
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            needs = map(Requirement, distribution(package).requires or ())
        except PackageNotFoundError:
            continue  # not needed on this machine
        missing = [need for need in needs if need.marker is None and canonicalize_name(need.name) not in lock]
        assert not missing, f"{package} needs {missing}"


def test_both_locks_have_the_same_versions() -> None:
    runtime, dev = map(locked, WANTED)
    assert {name: version_of(requirement) for name, (requirement, _) in runtime.items()}.items() <= {
        name: version_of(requirement) for name, (requirement, _) in dev.items()
    }.items()
