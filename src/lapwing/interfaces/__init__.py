"""Interfaces: Python, command line, HTTP, console and the PostgreSQL wire. They read input and show results."""
