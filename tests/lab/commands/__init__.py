"""The commands of the lab, a file each."""
