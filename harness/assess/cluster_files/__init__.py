"""Reads a cluster from files: what Kafka's own tools print and take, properties of brokers, and what ackproof saved.

A file is recognised by what it is as a whole, or refused with what to give instead (:mod:`foreign`):

* what ``kafka-topics.sh --describe``, ``kafka-configs.sh --describe`` and ``kafka-features.sh describe`` print
  (:mod:`printed`), and ``kafka-reassign-partitions.sh`` prints and takes (:mod:`assignments`);
* ``server.properties`` of brokers and controllers, and the values that a broker logs at its start (:mod:`servers`);
* YAML and JSON of Strimzi, Kubernetes and compose (:mod:`manifests`), and environments of containers
  (:mod:`environments`);
* JSON that ``ackproof assess --save`` wrote (:mod:`saved`).

What they say is kept with its place (:mod:`evidence`). Then it is decided which value counts (:mod:`nodes`,
:mod:`topics`, :mod:`settling`).
"""

from harness.assess.cluster_files.reading import ClusterFiles

__all__ = ["ClusterFiles"]
