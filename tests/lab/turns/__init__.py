"""Three streams on one Delta table, with and without turns: the test that the Job Coordinator's article describes.

Ingestion appends, Mutation updates, TTL deletes; each is a process with a Spark driver of its own.
Source: https://engineering.salesforce.com/global-synchronousness-and-ordering-in-delta-lake
"""
