"""Programs of a clone: set-up, the image's build, the local S3 and function, the emulators, sample jobs."""
