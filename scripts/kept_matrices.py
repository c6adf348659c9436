#!/usr/bin/env python
"""Writes matrix.md of every kept campaign as this version does; accounts, which need its runs, stay as they are.

From the root of a clone: .venv/bin/python -m scripts.kept_matrices
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.campaigns.report.markdown import as_markdown
from harness.records.files import MATRIX_FILE
from harness.records.verdict_lines import read_matrix

KEPT: Final = Path("results/reference")
_ACCOUNTS: Final = re.compile(r"\n<details>.*</details>\n", re.DOTALL)
#: Silent cells and situations follow accounts; without both the end does.
_AFTER: Final = re.compile(r"\n\| settings \| faults \| world \| outcome|\nRisky situations|\Z")


def kept() -> Iterator[tuple[Path, str]]:
    """Each kept matrix.md, and its text as it should be."""
    for file in sorted(KEPT.glob("**/matrix.md")):
        if (file.parent / MATRIX_FILE).is_file():
            matrix = read_matrix(file.parent)
            text = as_markdown(matrix.verdict, matrix.cells)
            accounts = _ACCOUNTS.search(file.read_text(encoding="utf-8"))
            after = _AFTER.search(text)
            if accounts and after:
                text = f"{text[: after.start()]}{accounts[0]}{text[after.start() :]}"
            yield file, text


if __name__ == "__main__":
    for path, words in kept():
        path.write_text(words, encoding="utf-8")
