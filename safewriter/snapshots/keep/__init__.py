"""Keep a prefix of snapshots in order: history, rollback, verification, clean-up."""
