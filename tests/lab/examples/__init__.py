"""Spark's own Python examples as jobs: which of them a variant of the image runs, and what it says of the others.

They run as they are, on S3: a relative path means the function's default file system.
"""
