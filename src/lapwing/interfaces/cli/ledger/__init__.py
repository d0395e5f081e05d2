"""``lapwing ledger``: commands for owners and auditors of a ledger."""
