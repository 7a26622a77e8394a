"""Known vulnerabilities of the jars: their artifacts, a database's advisories on them, and our assessments."""
