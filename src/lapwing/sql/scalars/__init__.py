"""Expressions over the columns of rows, and the functions they may call."""
