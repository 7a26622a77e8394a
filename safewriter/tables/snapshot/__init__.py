"""Snapshots as a guarded format: a build publishes in `success()`, and a settler fences a dead one."""
