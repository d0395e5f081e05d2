"""The console: the server's web pages. They do what the HTTP interface does, with the same rights, and nothing else."""
