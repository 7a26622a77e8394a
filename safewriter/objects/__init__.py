"""Objects with compare-and-swap: the only thing that SafeWriter's state rests on."""

from safewriter.objects.location import Location
from safewriter.objects.memory import MemoryObjectStore
from safewriter.objects.s3 import S3ObjectStore, s3_client
from safewriter.objects.store import ListedObject, ObjectStore, PreconditionFailed, StoredObject, StoreError, Upload

__all__ = [
    "ListedObject",
    "Location",
    "MemoryObjectStore",
    "ObjectStore",
    "PreconditionFailed",
    "S3ObjectStore",
    "StoreError",
    "StoredObject",
    "Upload",
    "s3_client",
]
