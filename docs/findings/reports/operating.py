"""What an operator asks a cluster, through one of its brokers."""

import time

from kafka import KafkaAdminClient, TopicPartition


def until(true, limit_s=300):
    """Try again until it is true and raises nothing, and return it."""
    end = time.monotonic() + limit_s
    while True:
        try:
            if answer := true():
                return answer
        except Exception:
            if time.monotonic() > end:
                raise
        if time.monotonic() > end:
            raise TimeoutError(true)
        time.sleep(0.1)


class Operator:
    def __init__(self, through, brokers):
        self.admin = until(lambda: KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{9090 + through}"))
        self.admin._controller_id = through  # this broker hands requests on to the controller
        until(lambda: len(self.admin.describe_cluster()["brokers"]) == brokers)

    def create(self, name, *replicas, **configs):
        assigned = {"assignments": dict(enumerate(replicas)), "configs": configs}
        self.admin.create_topics({name: assigned})
        until(lambda: all(sorted(self.view(name, n)["isr_nodes"]) == sorted(r) for n, r in enumerate(replicas)))

    def view(self, name, number=0):
        (topic,) = self.admin.describe_topics([name])
        return next(each for each in topic["partitions"] if each["partition_index"] == number)

    def prefer(self, name, *replicas):
        """Change the order of the replicas: the first is preferred. The leader stays."""
        self.admin.alter_partition_reassignments({TopicPartition(name, 0): replicas})

    def elect(self, name):
        """Have the preferred replica elected."""
        self.admin.elect_leaders(0, {name: [0]})
