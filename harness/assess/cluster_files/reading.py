"""Takes files one after the other, whatever kind each is of, and makes one cluster of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import msgspec

from harness.assess.cluster_files.assignments import current_assignment, is_reassignment_text, read_assignment
from harness.assess.cluster_files.environments import is_environment, of_environment, read_container
from harness.assess.cluster_files.evidence import ClusterEvidence
from harness.assess.cluster_files.foreign import foreign_json, foreign_text
from harness.assess.cluster_files.manifests import read_manifests
from harness.assess.cluster_files.printed import is_printed, read_printed
from harness.assess.cluster_files.saved import checked
from harness.assess.cluster_files.servers import is_properties, logs_values, marked, of_log, of_properties, read_server
from harness.assess.cluster_files.settling import settled
from harness.assess.cluster_files.yaml_texts import documents_in, from_json
from harness.assess.configuration import Cluster, Release
from harness.assess.properties_files import FileText, decoded
from harness.ground.errors import PlanError
from workloads import shown

WHAT: Final = (
    "a file that kafka-topics.sh --describe, kafka-configs.sh --describe or kafka-features.sh describe printed, the "
    "JSON of a reassignment, a server.properties, YAML of Strimzi or compose, or what `ackproof assess --save` wrote"
)
#: YAML has its own beginnings, and lines further in below a key; properties have neither.
_YAML: Final = re.compile(r"^(---|apiVersion:|kind:|services:)|^[\w.-]+:[ \t]*\r?\n[ \t]+\S", re.MULTILINE)
#: A log's line may begin with a bracket, too.
_JSON: Final = re.compile(r"^(\{|\[\s*[{\]])", re.MULTILINE)


class ClusterFiles:
    """Takes files in any order, and makes one cluster of them."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._evidence = ClusterEvidence()
        self._saved: Cluster | None = None

    def add(self, path: Path) -> None:
        """Read one file.

        Raises:
            PlanError: it cannot be read, is of no kind that is known, or contradicts another; the text says what to do.
        """
        file = decoded(path, WHAT)
        try:
            self._take(file, path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PlanError(f"{path} cannot be understood ({_why(error)}); name {WHAT}") from error
        self._names.append(str(path))
        if self._saved is not None and len(self._names) > 1:
            raise PlanError(
                f"{', '.join(self._names)}: what `ackproof assess --save` wrote is a whole cluster; name it alone"
            )

    def cluster(self, release: Release | None = None) -> Cluster:
        """The cluster of all files, whose brokers are of this release.

        Raises:
            PlanError: no file has topics with their replicas.
        """
        source = ", ".join(self._names)
        if self._saved is not None:
            return msgspec.structs.replace(self._saved, source=source)
        if not any(said.partitions or said.declared for said in self._evidence.topics.values()):
            raise PlanError(f"{source}: no topic with its replicas; add the text of `kafka-topics.sh --describe`")
        return settled(self._evidence, source, release)

    def _take(self, content: FileText, path: Path) -> None:
        """Read a text by what it is: a kind is chosen by the look of the whole, never because one name fits."""
        text, file = content.text, str(path)
        if is_printed(text):
            read_printed(text, file, self._evidence)
            if is_reassignment_text(text):
                self._json(current_assignment(text), file)
        elif is_reassignment_text(text):
            self._json(current_assignment(text), file)
        elif logs_values(text):
            for server in of_log(text, file):
                read_server(server, self._evidence)
        elif _JSON.match(text.lstrip()):
            self._json(json.loads(text), file)
        elif why := foreign_text(text):
            raise ValueError(why)
        elif path.suffix in {".yaml", ".yml"} or _YAML.search(text):
            read_manifests(documents_in(text), file, self._evidence)
        elif is_environment(text):
            read_container(of_environment(text, file), self._evidence)
        elif is_properties(text):
            read_server(marked(of_properties(text, file), content.encoding), self._evidence)
        elif begin := _JSON.search(text):
            table, _ = json.JSONDecoder().raw_decode(text[begin.start() :])
            self._json(table, file)
        else:
            raise ValueError("it is no text of Kafka's tools, and not every line is an entry, a comment or blank")

    def _json(self, content: object, file: str) -> None:
        if why := foreign_json(content):
            raise ValueError(why)
        if isinstance(content, dict) and "partitions" in content and "brokers" not in content:
            read_assignment(content, file, self._evidence)
        elif isinstance(content, dict) and {"source", "topics"} <= content.keys():
            self._saved = checked(content)
        else:
            read_manifests([from_json(content)], file, self._evidence)


def _why(error: Exception) -> str:
    return f"{shown(str(error.args[0]))} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
