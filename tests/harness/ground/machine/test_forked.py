"""Forked workers outlive what other parts of their parent left: clients of librdkafka among it."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

LIMIT_S: Final = 240.0
#: Clients that are in a circle are freed by whoever collects next: here the worker, at its first allocation.
LEFT: Final = """
import gc
from confluent_kafka import Producer

class Owner:
    def __init__(self):
        self.producer, self.itself = Producer({"bootstrap.servers": "127.0.0.1:1"}), self
        self.producer.produce("t", b"")

gc.disable()
for _ in range(4):
    Owner()
"""
POOL: Final = """
from harness.ground.machine.forked import forked_pool
with forked_pool(2) as pool:
    print(sum(pool.submit(gc.collect).result() >= 0 for _ in range(4)))
"""
SEARCH: Final = """
from harness.lab.explore import exhaust, scope_named, search
begin = search.Worker.begin
search.Worker.begin = lambda worker: (gc.collect(), begin(worker))[1]
print(exhaust(scope_named("calm-1"), workers=2).states)
"""


@pytest.mark.parametrize(("work", "printed"), [(POOL, "4"), (SEARCH, "36")], ids=["pool", "search"])
def test_a_worker_frees_no_client_that_its_parent_left(work: str, printed: str) -> None:
    command = [sys.executable, "-c", LEFT + work]
    ended = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False, text=True)
    assert (ended.returncode, ended.stdout.strip()) == (0, printed), ended.stderr[-2000:]
