"""Read a published snapshot."""
