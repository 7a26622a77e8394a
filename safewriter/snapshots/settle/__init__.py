"""Settle a build without Spark and the packages that builds need."""
