"""The package that connects all parts: the life cycle of a data set, and queries on it, the same for every interface."""
