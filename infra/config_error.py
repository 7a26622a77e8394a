"""The one error of the stack's settings."""

from __future__ import annotations

__all__ = ["ConfigError"]


class ConfigError(ValueError):
    """A context value that cannot be used: the key, the value, and the remedy."""

    def __init__(self, key: str, found: object, remedy: str) -> None:
        super().__init__(f"context {key}={found}: {remedy}")
        self.key = key
        self.remedy = remedy
