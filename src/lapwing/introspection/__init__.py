"""What a data set says about itself: its tables, columns and settings, to people and to the clients that ask before they ask.

Everything here is answered from the catalogue and the public facts of a version. No row is read, nothing is charged and nothing is
written to the ledger. Statements run in the scratch engine, which holds tables made from the catalogue and nothing else.
"""
