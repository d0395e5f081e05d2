"""The ledger in a file of this machine, and the registry of sources beside it."""
