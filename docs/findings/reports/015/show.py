#!/usr/bin/env python3
"""A new coordinator tells older offsets than were acknowledged. Run: KAFKA=... unshare -n python show.py [rested]."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cluster import Cluster
from group import Asked
from operating import until

TOPIC = "__consumer_offsets"
old = 0
with Cluster() as cluster, ThreadPoolExecutor() as pool:
    cluster.create("t", [1, 2, 0])
    cluster.create(TOPIC, [0, 1, 2], **{"cleanup.policy": "compact"})
    for number in range(1, 6):
        former, latter = Asked(0), Asked(1)
        cluster.prefer(TOPIC, 1, 0, 2)
        until(lambda former=former, number=number: former.commit("g", "t", 10 * number) == "NoError")
        time.sleep(2)  # every broker knows that this one is committed
        assert former.commit("g", "t", 10 * number + 1) == "NoError"
        time.sleep(2 if "rested" in sys.argv else 0)
        cluster.elect(TOPIC)
        begun, answers, stable = time.monotonic(), [], pool.submit(Asked(1).committed, "g", "t", True)
        while (answer := latter.committed("g", "t")) != 10 * number + 1:
            answers.append((round(time.monotonic() - begun, 3), answer))
            time.sleep(0.01)
        early = [(at, answer) for at, answer in answers if isinstance(answer, int)]
        old += bool(early)
        print(f"{10 * number + 1} was acknowledged; then (seconds, offset): {early[:1]} to {early[-1:]}")
        print("  asked for stable offsets:", stable.result(30))
        cluster.prefer(TOPIC, 0, 1, 2)
        cluster.elect(TOPIC)
        until(lambda: sorted(cluster.view(TOPIC)["isr_nodes"]) == [0, 1, 2])
    print("rounds with an old offset:", old, "of 5")
sys.exit(old > 0)
