"""Time in which nobody was served is nobody's fault."""

from __future__ import annotations

from types import SimpleNamespace

from workloads import ServedTime


def test_of_the_time_between_two_looks_no_more_counts_than_there_should_be():
    clock = SimpleNamespace(at_us=5_000, now_us=lambda: clock.at_us)
    served = ServedTime(clock, every_us=100)
    clock.at_us += 100
    assert served.look() == 100
    clock.at_us += 30
    assert served.now_us() == 130
    clock.at_us += 9_000
    assert (served.now_us(), served.look(), served.now_us()) == (200, 200, 200)
    clock.at_us += 60
    assert served.now_us() == 260


def test_time_in_which_the_disk_serves_nobody_does_not_count():
    clock = SimpleNamespace(at_us=0, now_us=lambda: clock.at_us)
    served = ServedTime(clock, every_us=100)
    clock.at_us += 80
    assert served.look(serves=False) == 0
    clock.at_us += 50
    assert served.look() == 50
