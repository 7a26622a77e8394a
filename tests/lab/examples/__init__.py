"""Spark's own Python examples as jobs: which of them a variant of the image runs, and the errors of the others.

They run unmodified, on S3: a relative path means the function's default file system.
"""
