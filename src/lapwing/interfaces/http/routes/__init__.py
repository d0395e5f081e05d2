"""The routes of the HTTP interface, by who uses them."""
