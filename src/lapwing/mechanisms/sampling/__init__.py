"""Exact samplers of the textbook mechanisms, for lessons and audits."""
