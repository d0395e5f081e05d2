"""Synthetic tables from released marginals."""
