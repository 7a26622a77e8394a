"""Tables, as seen by readers that share no code with the writers."""
