"""Schedules from one seed: several guarded writers and settlers on one table, with faults, on a virtual clock.

The product's own Python runs against an S3 in memory, one thread at a time; only Java's part of a write is modelled.
"""
