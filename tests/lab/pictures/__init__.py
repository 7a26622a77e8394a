"""Two pictures for the documents, drawn from real runs: `python -m tests.lab.pictures`."""
