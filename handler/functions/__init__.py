"""The Lambda functions beside the main one: the sweeper and the redrive."""
