"""Tests that must not run at the same time, or share what is made once, are one ``xdist_group``: it is kept to."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems

LIMIT_S = 120.0
TESTS = """
import os, pathlib, pytest, time

def note(name):
    time.sleep(0.2)
    pathlib.Path(name).write_text(os.environ["PYTEST_XDIST_WORKER"])

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(4))
def test_grouped(number):
    note(f"grouped-{number}")

@pytest.mark.parametrize("number", range(4))
def test_alone(number):
    note(f"alone-{number}")
"""


@pytest.mark.system
def test_tests_of_one_group_run_in_one_worker(tmp_path):
    (tmp_path / "test_them.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, timeout=LIMIT_S, check=False, text=True
    )
    assert done.returncode == 0, done.stdout
    workers = {name: {path.read_text() for path in tmp_path.glob(f"{name}-*")} for name in ("grouped", "alone")}
    assert len(workers["grouped"]) == 1
    assert len(workers["grouped"] | workers["alone"]) == 2


@pytest.fixture(scope="module")
def made_once():
    return object()


def test_tests_that_share_a_fixture_of_their_module_are_one_group(request, made_once):
    """As tests/conftest.py marks them."""
    assert request.node.get_closest_marker("xdist_group").args == ("tests/test_groups_of_tests",)


def test_other_tests_are_in_no_group(request, tmp_path):
    assert request.node.get_closest_marker("xdist_group") is None


class Marked:
    def __init__(self, *names):
        self._names = names

    def get_closest_marker(self, name):
        return name if name in self._names else None


@pytest.mark.parametrize(
    ("settings", "first"), [(SimpleNamespace(workerinput={}), "long"), (SimpleNamespace(), "short")]
)
def test_workers_begin_with_the_long_tests(settings, first):
    """While a long test at the end goes on, the other workers would have nothing to do."""
    short, long = Marked(), Marked("system")
    items = [short, long]
    pytest_collection_modifyitems(settings, items)
    assert items[0] is {"long": long, "short": short}[first]
