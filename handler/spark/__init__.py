"""From a job to the command that runs it: Java's command line, class path, archive, environment."""
