"""The reference of an event: the fields of a job document, and the Spark settings of the allow-list."""

from __future__ import annotations

from itertools import groupby

from handler.request.event_fields import FlatDocument
from handler.spark_settings.allowed import ALLOWED
from scripts.reference.model import described

__all__ = ["fields", "settings"]


def fields() -> str:
    """Return the fields of the flat form."""
    return "\n\n".join(described(FlatDocument))


def settings() -> str:
    """Return the allow-list, grouped by the form of the values."""
    by_form = groupby(sorted(ALLOWED, key=lambda name: (ALLOWED[name].says, name)), key=lambda name: ALLOWED[name].says)
    return "\n".join(f"- **{says}**: {', '.join(f'`{name}`' for name in names)}" for says, names in by_form)
