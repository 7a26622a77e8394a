"""Tables, read by code that shares nothing with the writers."""
