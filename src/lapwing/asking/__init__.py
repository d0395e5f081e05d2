"""Requests: a statement and its options become a quote, a purchase and an answer, in the same way for every interface."""
