"""Text without the secrets in it."""
