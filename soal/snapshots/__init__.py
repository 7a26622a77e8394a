"""Snapshots on the command line: documents, views, and the Spark session of a build."""
