"""The files of a snapshot, byte for byte: pointer, manifest, run record, shards."""
