"""An AWS account on this machine, which nobody here wrote: ministack, with the stack deployed into it by the CDK."""
