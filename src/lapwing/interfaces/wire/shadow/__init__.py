"""The shadow database: declared tables without rows, which answers statements about the catalogue."""
