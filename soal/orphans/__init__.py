"""`soal orphans`: files in a table's folder that no version or snapshot of the table needs."""
