"""Small wrong scripts: each ends with its rows in the table, or with an error."""
