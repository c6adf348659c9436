"""Broker 0 writes to a log partition what broker 1 lacks, and misses the epoch in which 1 leads."""

import time

from operating import until


def size(cluster, node, topic):
    return (cluster.home / str(node) / f"{topic}-0" / f"{0:020}.log").stat().st_size


def missed_epoch(cluster, topic, write, acknowledged, told=False):
    """Broker 0 leads, 0, 1 and 2 are in sync. ``told``, the control: broker 0 hears the controller throughout."""
    cluster.prefer(topic, 1, 0, 2)
    cluster.cut((0, 1))
    time.sleep(1)  # a fetch that is out is answered within half a second
    write()
    until(lambda: size(cluster, 2, topic) > size(cluster, 1, topic))
    time.sleep(1)  # 2 has it, and 0 knows that by the next fetch
    away = [(0, 1), (0, 2)] + [(0, 9)] * (not told)
    cluster.cut(*away)
    time.sleep(1)
    cluster.elect(topic)  # epoch e + 1: 1 leads, 2 follows it and truncates
    until(lambda: size(cluster, 2, topic) == size(cluster, 1, topic))
    print("2 has truncated what 0 has not acknowledged")
    cluster.prefer(topic, 0, 1, 2)
    cluster.elect(topic)  # epoch e + 2: 0 leads
    cluster.cut((0, 2))  # 1 fetches from 0 again, 2 does not
    end = time.monotonic() + 30
    while not acknowledged() and time.monotonic() < end:
        time.sleep(0.1)
    cluster.prefer(topic, 2, 0, 1)
    cluster.elect(topic)  # a clean election
    print("in sync:", cluster.view(topic)["isr_nodes"], "leader:", cluster.view(topic)["leader_id"])
    cluster.cut()
    time.sleep(5)
