"""Trees of ranges over one ordered column."""
