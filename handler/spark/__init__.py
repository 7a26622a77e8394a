"""Compose the command that runs a job: the JVM's command line, class path, archive, environment."""
