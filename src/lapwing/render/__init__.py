"""IR -> engine SQL. Only certified plans are rendered, and nothing of the analyst's text survives into the SQL."""
