"""From how the child ended to one document: the outcome, the result, and where it is delivered."""
