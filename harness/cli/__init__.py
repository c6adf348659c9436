"""The command line."""

from harness.cli.app import main

__all__ = ["main"]
