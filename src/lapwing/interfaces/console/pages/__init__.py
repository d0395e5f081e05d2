"""The pages, by user. Each is one function: its dependency checks rights, the HTTP interface gives values, a template shows them."""
