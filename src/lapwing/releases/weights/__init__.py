"""Private multiplicative weights."""
