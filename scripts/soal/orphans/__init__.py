"""`soal orphans`: what lies in a Delta table's folder and no version of the table needs."""
