"""The request that publishes a block to an Iceberg table, and its faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soal.testing.s3.rules import Match, Refuse, Rule
from tests.support.network_faults import Late, LoseReply

if TYPE_CHECKING:
    import random

    from soal.testing.s3.wire import Wire

__all__ = ["Publications"]


class Publications:
    """Publications over one wire, to a REST server or as a metadata file on S3; `late` holds those that land later."""

    def __init__(self, wire: Wire, late: list[Late], *, rest: bool) -> None:
        self._wire, self._late = wire, late
        self._one = Match(
            operations={"CatalogChange" if rest else "PutObject"}, key_class=None if rest else "iceberg/metadata"
        )
        # An answer that neither Iceberg nor its S3 client retries for minutes.
        self._status = 500 if rest else 403

    def hit(self, how: str, draw: random.Random) -> None:
        """Inject a fault into the next publication."""
        if how == "lost":
            self._wire.add(Rule(self._one, LoseReply(draw.choice([self._status, self._status, 503]))))
        elif how == "refused":
            self._wire.add(Rule(self._one, Refuse(self._status)))
        elif how != "success":
            late = Late(then=self._status)
            self._wire.add(Rule(self._one, late))
            self._late.append(late)
