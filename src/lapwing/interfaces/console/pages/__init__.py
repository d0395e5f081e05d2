"""The pages, by who uses them. Each is one function: rights by its dependency, values from the HTTP interface, one template."""
