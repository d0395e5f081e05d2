"""Lists of statements with expected outcomes, compared with the bare engines."""
