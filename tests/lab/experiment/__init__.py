"""The paper's experiment: kills between the data and the commit of a write, without a guard and with it."""
