"""Errors that end a check. Findings are data and are never raised."""

from __future__ import annotations


class CheckError(ValueError):
    """A history cannot be checked: the text names it and says what to do."""


class JavaMissingError(CheckError):
    """PySpark needs Java 17 or later with the module jdk.incubator.vector; the text names what to install."""


class SparkError(CheckError):
    """The Spark job failed; the text holds Spark's own first line."""


class WrongMasterError(SparkError):
    """The address names no Spark master."""


class SilentMasterError(SparkError):
    """The Spark master does not answer, or cannot be used."""
