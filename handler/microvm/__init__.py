"""The function as a Lambda MicroVM: one job, in a copy of a started Spark that a memory snapshot holds."""
