"""The commands of `mango`, a file for each group."""
