"""The objects of the checkpoint bucket: documents, markers, leases; and the journal beside the job."""
