"""What the checkpoint bucket holds: documents, markers, leases; and the journal beside the job."""
