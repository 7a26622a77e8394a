"""What travels to the executors: it is tried on the driver, before there is a job."""

from __future__ import annotations

from safewriter.snapshots.errors import ConfigValidationError

__all__ = ["check_travels", "name_of"]


def check_travels(role: str, value: object) -> None:
    """Raise `ConfigValidationError` if the value cannot be pickled; `role`: what it is for."""
    from pyspark import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception as error:
        raise ConfigValidationError(
            f"{role}: {name_of(value)} cannot travel to the executors: {error}. It must be picklable"
        ) from error


def name_of(value: object) -> str:
    """Return the name of a function, for messages."""
    return getattr(value, "__qualname__", None) or repr(value)
