"""Make the command that runs a job: Java's command line, class path, archive, environment."""
