"""Statements about PostgreSQL's catalogue: parsed by a grammar and rewritten for the shadow database."""
