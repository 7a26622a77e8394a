"""Turn a delivered event into a job: envelopes, the event's fields, the run key."""
