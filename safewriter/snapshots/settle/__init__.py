"""Settle a build from outside, without Spark and the packages that builds need."""
