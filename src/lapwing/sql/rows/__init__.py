"""Rows of units: tables, joins, subqueries, and the aggregates over them."""
