"""The server: analysts ask over the network and never have access to the rows, the keys or the ledger.

``lapwing serve`` starts it. Interfaces (HTTP) know identities, rights and asking; nothing here knows engines, plans or mechanisms.
"""
