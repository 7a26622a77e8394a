"""Known vulnerabilities of the jars: which artifacts they hold, what a database says of those, and our assessment."""
