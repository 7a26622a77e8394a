"""Tests of PySpark jobs: an S3 with faults, a guarded session, and jobs that are killed."""
