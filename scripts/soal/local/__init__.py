"""The S3 and the Lambda function that run on this machine."""
