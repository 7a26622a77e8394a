"""Small scripts that do it wrong: each ends with its rows in the table, or with an error."""
