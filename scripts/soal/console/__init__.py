"""What a command prints: data on stdout for a person or as JSON, remarks and problems on stderr."""
