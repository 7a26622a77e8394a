"""Functions, queues and logs in an AWS account."""
