"""The ledger in a file on this machine, and the registry of sources beside it."""
