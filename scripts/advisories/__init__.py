"""Known vulnerabilities of the jars: their artifacts, a database's advisories about those, and our assessment."""
