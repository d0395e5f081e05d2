"""EXPLAIN: the price, the bounds and the predicted errors of a statement as text."""
