"""The local S3 of a clone (`soal local up`): its names, and how commands find it."""
