"""Marginals: axes, workload, noise allocation and the consistent estimate from noisy tables."""
