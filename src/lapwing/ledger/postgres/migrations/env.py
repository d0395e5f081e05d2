"""Run by Alembic: every migration in one transaction, on the connection that ``lapwing.ledger.postgres.install`` opened."""

from alembic import context

# The version is kept inside our own schema: a dump of the schema carries it.
context.configure(connection=context.config.attributes["connection"], version_table_schema="lapwing", transaction_per_migration=False)
with context.begin_transaction():
    context.run_migrations()
