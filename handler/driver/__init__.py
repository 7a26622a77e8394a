"""The modules that run in the child process. They import as little as they can: Spark starts after them."""
