"""Statements about PostgreSQL's catalogue: parsed by a grammar and written anew for the shadow database."""
