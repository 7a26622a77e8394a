"""The container image: what is made for it, how it is built, measured and tested."""
