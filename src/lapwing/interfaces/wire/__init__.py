"""The PostgreSQL wire: unmodified PostgreSQL clients can ask questions and read the declared schema.

An interface beside HTTP, with the same people, rights, audit log and curator. Lapwing's own parser reads statements that mention a table
of the data set, and the curator answers them. A PostgreSQL database, the shadow, answers what tools ask first (catalogues, settings): it
holds the declared schema and no row, and its role may not read a table.
"""
