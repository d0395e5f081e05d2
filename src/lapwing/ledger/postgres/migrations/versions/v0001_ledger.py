"""The first tables: data sets, analysts, charges, chained entries, workers, proposals."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[2] / "sql"


def upgrade() -> None:
    """The file as it is: it does not change after a release. The functions are made by ``lapwing.ledger.postgres.routines``."""
    op.get_bind().exec_driver_sql((_SQL / "0001_tables.sql").read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    """A ledger is never taken away by a migration."""
    raise NotImplementedError
