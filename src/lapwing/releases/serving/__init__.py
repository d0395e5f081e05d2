"""Free answers from releases: coverage, values and error bars."""
