"""A run as one durable execution: attempts under one run key, until one of them is the last."""
