"""How a write that its job left open gets its verdict: recovery, supervisor, sweeper, operator."""
