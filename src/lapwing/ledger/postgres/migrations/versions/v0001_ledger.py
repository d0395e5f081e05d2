"""The first tables: data sets, analysts, charges, chained entries, workers, proposals."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[2] / "sql"


def upgrade() -> None:
    """Run the file, which does not change after a release. ``lapwing.ledger.postgres.routines`` creates the functions."""
    op.get_bind().exec_driver_sql((_SQL / "0001_tables.sql").read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    """A migration never removes a ledger."""
    raise NotImplementedError
