"""The reference tool's own test cases, as data: histories in, verdicts out.

``conformance_cases.json`` holds facts extracted from the tests of Jepsen's Kafka workload (origin under the EPL): 39
histories with the anomalies that its checker finds in them, and a few inputs and outputs of single functions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "conformance_cases.json").read_text())
BY_NAME = {case["name"]: case for case in CASES}


def cases(level: str) -> list[str]:
    """Names of the cases of one level."""
    return [case["name"] for case in CASES if case["level"] == level]


def write_history(case: dict[str, Any], path: Path) -> Path:
    """The case's history as a file of JSON lines."""
    operations = [{k: v for k, v in op.items() if k != "pos"} for op in case["history"]]
    path.write_text("".join(json.dumps(line) + "\n" for line in [{"options": case["options"]}, *operations]))
    return path


def comparable(findings: list[dict[str, Any]], like: list[dict[str, Any]]) -> list[str]:
    """Findings as a multiset of texts, with the fields that the reference gives; cycles up to rotation."""
    fields = sorted({name for finding in like for name in finding})
    plain = [{name: _plain(finding.get(name)) for name in fields} for finding in msgspec.to_builtins(findings)]
    return sorted(json.dumps(_rotated(finding), sort_keys=True) for finding in plain)


def _rotated(finding: dict[str, Any]) -> dict[str, Any]:
    """A cycle begins anywhere: here with its smallest operation."""
    if "cycle" not in finding:
        return finding
    *nodes, _ = finding["cycle"]
    start = nodes.index(min(nodes))
    turned, steps = nodes[start:] + nodes[:start], finding["steps"][start:] + finding["steps"][:start]
    return finding | {"cycle": [*turned, turned[0]], "steps": steps}


def _plain(content: Any) -> Any:
    """Keys of JSON objects are texts, so 11 and "11" are one key; an operation is known by its place."""
    if isinstance(content, dict) and "op_pos" in content:
        return content["op_pos"]
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    return [_plain(item) for item in content] if isinstance(content, list) else content
