"""Does a client program keep to the protocol? Points that are tried against the reference broker."""

from harness.lab.client_check.checking import CheckedProgram, PointResult, check_program

__all__ = ["CheckedProgram", "PointResult", "check_program"]
