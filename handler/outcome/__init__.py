"""Turn the child's end into one document: the outcome, the result, and its delivery."""
