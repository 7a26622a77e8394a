"""Locks of jobs that take turns, as an operator sees and ends them."""
