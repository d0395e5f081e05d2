"""The PostgreSQL wire: unmodified PostgreSQL clients ask, and see what is declared.

An interface beside HTTP, with the same people, rights, audit log and asking. What mentions a table of the data set is read by our
own parser and answered by the curator; what tools ask before they ask (catalogues, settings) is answered by a PostgreSQL database that
holds the declared schema and no row, and whose role may not read a table.
"""
