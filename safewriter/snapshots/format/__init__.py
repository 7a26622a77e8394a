"""The files of a snapshot, byte for byte: pointer, manifest, build record, shards."""
