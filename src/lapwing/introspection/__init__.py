"""Metadata of a data set: its tables, columns and settings, for people and for clients that inspect a connection.

Everything here is answered from the catalogue and the public facts of a version. No row is read, nothing is charged and nothing is
written to the ledger. Statements run in the scratch engine, which holds tables made from the catalogue and nothing else.
"""
