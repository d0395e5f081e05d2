"""The only room that knows all the parts: the life of a data set, and asking it, one way for every face."""
