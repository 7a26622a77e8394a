"""From a key to its shard."""
