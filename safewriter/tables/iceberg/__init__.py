"""Iceberg: its catalogs and metadata without a JVM (pyiceberg), and its session with one."""
