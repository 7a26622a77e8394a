"""An invocation of a function, local or deployed: its event, its answer, and the attempts of a long run."""
