"""JSON Schemas (draft 2020-12) of what other programs read: files of campaigns and releases, and ``assess --json``.

They follow from the types, so they cannot promise what the program does not write. A schema allows fields that it does
not know: within a version fields may be added.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

import msgspec

from checkers import MATRIX_VERSION, VERDICTS_VERSION, Matrix, VerdictLine
from harness.records.assessment_file import ASSESSMENT_VERSION, Assessment
from harness.records.client_table_file import CLIENT_TABLE_VERSION, ClientTable
from harness.records.release_file import RELEASE_VERSION, ReleaseRecord

#: Each schema's file, with the version of what it describes.
SCHEMAS: Final[dict[str, type]] = {
    f"assessment.v{ASSESSMENT_VERSION}.schema.json": Assessment,
    f"clients.v{CLIENT_TABLE_VERSION}.schema.json": ClientTable,
    f"matrix.v{MATRIX_VERSION}.schema.json": Matrix,
    f"release.v{RELEASE_VERSION}.schema.json": ReleaseRecord,
    f"verdicts.v{VERDICTS_VERSION}.schema.json": VerdictLine,
}


def schema_of(name: str) -> dict[str, Any]:
    """The schema that the file ``name`` of :data:`SCHEMAS` holds."""
    schema = msgspec.json.schema(SCHEMAS[name])
    for definition in schema["$defs"].values():
        if "description" in definition:
            definition["description"] = inspect.cleandoc(definition["description"])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:ackproof:{name}"}
    return head | schema


def schema_text(name: str) -> bytes:
    """The schema as the text of its file."""
    return msgspec.json.format(msgspec.json.encode(schema_of(name)), indent=1) + b"\n"
