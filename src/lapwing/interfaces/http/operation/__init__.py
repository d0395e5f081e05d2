"""Tools for operators: audit log, metrics, traces, backups, and the supervisor of the workers."""
