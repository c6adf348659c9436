#!/usr/bin/env python3
"""A coordinator that is cut off tells old offsets. Run: KAFKA=... unshare -n python show.py [told]."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cluster import CONTROLLER, Cluster
from group import Asked
from operating import until

with Cluster() as cluster:
    cluster.create("t", [1, 2, 0])
    cluster.create("__consumer_offsets", [0, 1, 2], **{"cleanup.policy": "compact"})
    until(lambda: Asked(0).commit("g", "t", 5) == "NoError")
    print("broker 0 acknowledged 5")
    if "told" in sys.argv:  # the control: it hears of its successor
        cluster.cut((0, 1), (0, 2))
        cluster.prefer("__consumer_offsets", 1, 0, 2)
        cluster.elect("__consumer_offsets")
    else:
        cluster.cut((0, 1), (0, 2), (0, CONTROLLER))
    until(lambda: cluster.view("__consumer_offsets")["leader_id"] == 1)
    until(lambda: Asked(1).commit("g", "t", 10) == "NoError")
    print("broker 1 acknowledged 10")
    old = False
    for seconds in (0, 20, 40):
        time.sleep(seconds)
        for stable in (False, True):
            told = Asked(0).committed("g", "t", stable)
            old |= told == 5
            print(f"{seconds} s later broker 0 says{', stable' * stable}:", told)
sys.exit(old)
