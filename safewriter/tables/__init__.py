"""One folder for each table format; nothing outside imports Spark."""
