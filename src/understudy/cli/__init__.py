"""The command line: arguments and words, nothing else."""
