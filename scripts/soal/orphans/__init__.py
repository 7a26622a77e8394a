"""`soal orphans`: what lies in a table's folder and no version or snapshot of the table needs."""
