"""Objects with compare-and-swap: SafeWriter keeps all its state in them.

The S3 store is not imported here, but from its own module: boto3 takes longer to import than all the rest.
"""

from safewriter.objects.location import Location
from safewriter.objects.store import (
    ListedObject,
    ObjectStore,
    PreconditionFailed,
    StoredObject,
    StoreError,
    Upload,
    batches,
)

__all__ = [
    "ListedObject",
    "Location",
    "ObjectStore",
    "PreconditionFailed",
    "StoreError",
    "StoredObject",
    "Upload",
    "batches",
]
