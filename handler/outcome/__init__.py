"""Turn the child's end into an outcome and a result document, and deliver it."""
