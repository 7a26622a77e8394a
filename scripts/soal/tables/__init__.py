"""Tables as readers see them that share no code with the writers."""
