"""Needs of some tests; a skip says what the machine is missing."""

import os
import shutil

import pytest


def missing_for_root(*tools: str) -> str:
    """The reason why what needs root and these commands cannot be tested here; empty where it can."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return f"needs root and commands; missing: {missing or 'root'}" if os.geteuid() != 0 or missing else ""


def needs_root(*tools: str) -> pytest.MarkDecorator:
    """Skips a test where root or one of these commands is missing."""
    why = missing_for_root(*tools)
    return pytest.mark.skipif(bool(why), reason=why)
