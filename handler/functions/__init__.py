"""The Lambda functions beside the main one: the durable function, the sweeper and the redrive."""
