"""The paper's experiment: kills between the data and the commit of a write, with and without the guard."""
