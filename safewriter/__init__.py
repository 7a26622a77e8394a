"""SafeWriter: a table write that lands whole, once, or not at all."""
