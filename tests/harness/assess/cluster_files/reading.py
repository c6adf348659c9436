"""Files that tests read a cluster from, and the listing that most of them begin with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.assess import Cluster, ClusterFiles, Release
from harness.worlds.kafka.releases import parse_version

LISTING = """\
Topic: orders\tTopicId: b2c\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: segment.bytes=1073741824
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3
\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1
"""
IN_SYNC = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


def entry(name: str, value: str, *sources: str) -> str:
    """A line of kafka-configs.sh; each source is written "SOURCE" or "SOURCE=another value", without its _CONFIG."""
    places = [source.partition("=") for source in sources]
    synonyms = ", ".join(f"{source}_CONFIG:{name}={other or value}" for source, _, other in places)
    return f"  {name}={value} sensitive=false synonyms={{{synonyms}}}\n"


def read(directory: Path, files: Mapping[str, str | bytes], release: str = "") -> Cluster:
    """The cluster of files with these names and texts, in this order."""
    reading = ClusterFiles()
    for name, text in files.items():
        path = directory / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        reading.add(path)
    return reading.cluster(Release(parse_version(release)) if release else None)


def with_listing(directory: Path, name: str, text: str | bytes, release: str = "") -> Cluster:
    """The cluster of the listing and of one more file."""
    return read(directory, {"topics.txt": LISTING, name: text}, release)


def decided(cluster: Cluster, *names: str) -> dict[str, str]:
    """The effective values of these settings of the first topic."""
    return {name: cluster.setting_of(cluster.topics[0], name) for name in names}


def unclear(cluster: Cluster) -> set[str]:
    """The settings of which something was not understood, of the cluster or its first topic."""
    return {each.name for each in (*cluster.not_understood, *cluster.topics[0].not_understood)}
