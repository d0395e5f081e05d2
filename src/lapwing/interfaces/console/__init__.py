"""The console: pages of the server for people. It does what the HTTP interface does, by the same rights, and nothing else."""
