"""Invoking a local or deployed function: the event, the answer, and the attempts of a long run."""
