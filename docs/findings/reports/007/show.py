#!/usr/bin/env python3
"""An acknowledged commit of a group is gone. Run: KAFKA=... unshare -n python show.py [told]."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cluster import Cluster
from group import Asked
from missed_epoch import missed_epoch
from operating import until

# By default a commit is given up after 5 s, which is short for the moves of a script on a busy machine.
with Cluster(offsets_commit_timeout_ms=40_000) as cluster, ThreadPoolExecutor() as pool:
    cluster.create("t", [1, 2, 0])
    cluster.create("__consumer_offsets", [0, 1, 2], **{"cleanup.policy": "compact"})
    coordinator = Asked(0)
    until(lambda: coordinator.commit("g", "t", 1) == "NoError")
    print("1 was acknowledged")
    answers = []

    def write():
        answers.append(pool.submit(coordinator.commit, "g", "t", 7))

    def acknowledged():
        return answers[0].done()

    missed_epoch(cluster, "__consumer_offsets", write, acknowledged, told="told" in sys.argv)
    answer = answers[0].result(60)
    print("the commit of 7 was answered:", answer)
    left = until(lambda: isinstance(told := Asked(2).committed("g", "t", stable=True), int) and told)
    print("the next coordinator says that the group has committed", left)
sys.exit(answer == "NoError" and left != 7)
