"""Requests: a statement and its options become a quote, a purchase and an answer, the same for every interface."""
