"""Which groups a statement can have at all, from declarations, public tables and its own conditions."""
