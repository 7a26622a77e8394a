"""From what Lambda delivers to a job: envelopes, the event's fields, the run's name."""
