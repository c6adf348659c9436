"""Errors of checkers and histories, as errors of the harness."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from checkers import CheckError, JavaMissingError, SilentMasterError, WrongMasterError
from harness.ground.errors import HarnessError, JavaError, NotReachableError, PlanError, ResultsError
from workloads.history import HistoryError


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what checkers and histories raise into the harness's own errors; their texts say what to do.

    Raises:
        JavaError: Spark found no usable Java.
        PlanError: what is named is no Spark master.
        NotReachableError: a Spark master does not answer.
        ResultsError: a history cannot be read or stored.
        HarnessError: Spark failed.
    """
    try:
        yield
    except JavaMissingError as error:
        raise JavaError(str(error)) from error
    except WrongMasterError as error:
        raise PlanError(str(error)) from error
    except SilentMasterError as error:
        raise NotReachableError(str(error)) from error
    except HistoryError as error:
        raise ResultsError(str(error)) from error
    except CheckError as error:
        raise HarnessError(str(error)) from error
