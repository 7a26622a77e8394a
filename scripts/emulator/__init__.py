"""Lambda on this machine: its runtime interface emulator, durable executions, containers, and catalogs for jobs."""
