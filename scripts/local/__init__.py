"""The function and the S3 of a clone on this machine: `soal local`."""
