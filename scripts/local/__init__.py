"""`soal local`: a clone's function and S3 on this machine."""
