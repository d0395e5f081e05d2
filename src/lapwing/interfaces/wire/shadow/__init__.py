"""The shadow database: it has the declared tables without rows, and answers statements about the catalogue."""
