"""Tests that must not run at the same time, or share what is made once, are one ``xdist_group``: it is kept to."""

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems
from tests.sessions import begun, printed

LIMIT_S = 600.0
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


def run_workers(count, directory):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    arguments = ["-m", "pytest", "-q", "-n", str(count), "--dist", "loadgroup", "-p", "no:cacheprovider"]
    # At its end pytest deletes what older sessions left in the directory that sessions share: minutes of work.
    arguments.append(f"--basetemp={directory / 'temporary'}")
    started = begun(arguments, directory, environment, errors=subprocess.STDOUT)
    output, _ = printed(started, LIMIT_S)
    return subprocess.CompletedProcess(arguments, started.returncode, output)


@pytest.mark.system
def test_tests_of_one_group_run_in_one_worker(tmp_path):
    (tmp_path / "test_them.py").write_text(TESTS)
    done = run_workers(2, tmp_path)
    assert done.returncode == 0, done.stdout
    workers = {name: {path.read_text() for path in tmp_path.glob(f"{name}-*")} for name in ("grouped", "alone")}
    assert len(workers["grouped"]) == 1
    assert len(workers["grouped"] | workers["alone"]) == 2


SHARED = """
import pathlib, pytest
from tests.conftest import pytest_runtest_teardown

@pytest.fixture(scope="package")
def cluster():
    yield
    pathlib.Path("ended").touch()
"""
SHARING = """
import pathlib, pytest

@pytest.mark.xdist_group("sharing")
@pytest.mark.parametrize("number", range(2))
def test_{name}(cluster, number):
    assert not pathlib.Path("ended").exists()
"""
AFTERWARDS = """
import pathlib

def test_it_is_gone():
    assert pathlib.Path("ended").exists()
"""


@pytest.mark.system
def test_what_a_folder_shares_ends_with_its_group(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "conftest.py").write_text(SHARED)
    for name in ("first", "second"):
        (tmp_path / "folder" / f"test_{name}.py").write_text(SHARING.format(name=name))
    (tmp_path / "test_zz.py").write_text(AFTERWARDS)
    done = run_workers(1, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


@pytest.fixture(scope="module")
def made_once():
    return object()


def test_tests_that_share_a_fixture_of_their_module_are_one_group(request, made_once):
    """As tests/conftest.py marks them."""
    assert request.node.get_closest_marker("xdist_group").args == ("tests/test_groups_of_tests",)


def test_short_tests_of_a_module_are_one_group(request, tmp_path):
    assert request.node.get_closest_marker("xdist_group").args == ("tests/test_groups_of_tests",)


@pytest.mark.system
def test_a_long_test_that_shares_no_fixture_is_in_no_group(request, tmp_path):
    assert request.node.get_closest_marker("xdist_group") is None


class Marked:
    def __init__(self, *names, group=None):
        self._marks = dict.fromkeys(names, SimpleNamespace(args=()))
        if group is not None:
            self._marks["xdist_group"] = SimpleNamespace(args=(group,))

    def get_closest_marker(self, name):
        return self._marks.get(name)


def singles(count):
    return [Marked(group=f"short-{number}") for number in range(count)]


def sort(items, *, in_groups=True):
    pytest_collection_modifyitems(SimpleNamespace(option=SimpleNamespace(loadgroup=in_groups)), items)


@pytest.mark.parametrize("in_groups", [True, False])
def test_workers_find_the_long_tests_among_the_short_ones_and_none_at_the_end(in_groups):
    short, long = singles(10), [Marked("system") for _ in range(2)]
    items = [*short, *long]
    sort(items, in_groups=in_groups)
    spread = [short[0], long[0], *short[1:5], long[1], *short[5:]]
    assert items == (spread if in_groups else [*short, *long])


def test_groups_come_before_long_tests_and_the_largest_first():
    short, single = singles(10), Marked("system")
    small, large = [Marked("system", group="b") for _ in range(2)], [Marked("system", group="a") for _ in range(3)]
    quick = [Marked(group="c") for _ in range(2)]
    items = [*short, single, *small, *large, *quick]
    sort(items)
    assert [item for item in items if item not in [*short, *quick]] == [*large, *small, single]
    assert [item for item in items if item in [*short, *quick]] == [*quick, *short]
    assert items[:3] == [large[0], quick[0], quick[1]]


#: Marks and options by which a test is tried again, or may fail.
TRIED_AGAIN = re.compile(r"mark\.(?:flaky|retry|xfail)|--(?:reruns|retries|flake-finder)|rerunfailures|pytest-retry")


def test_no_test_is_tried_again_or_may_fail():
    root = Path(__file__).parent.parent
    files = [*(root / "tests").rglob("*.py"), *root.glob("*.lock"), root / "pyproject.toml", root / "Makefile"]
    files += [root / ".ci" / "run", *root.glob("scripts/*.sh")]
    assert len(files) > 300
    names = [path.name for path in files if path != Path(__file__) and TRIED_AGAIN.search(path.read_text())]
    assert names == []
