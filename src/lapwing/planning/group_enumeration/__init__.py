"""The possible groups of a statement, from declarations, public tables and its own conditions."""
