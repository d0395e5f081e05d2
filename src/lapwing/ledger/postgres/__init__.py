"""The ledger on PostgreSQL, for several machines: ``docs/explanation/postgres-ledger.md``. Needs the extra ``postgres``."""
