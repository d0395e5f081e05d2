"""The first schema: data sets, analysts, charges, chained entries, workers, proposals."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[2] / "sql"


def upgrade() -> None:
    """Each file as it is: none of them changes after a release."""
    for name in ("tables", "protocol", "batch", "policy", "rights"):
        op.get_bind().exec_driver_sql((_SQL / f"0001_{name}.sql").read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    """A ledger is never taken away by a migration."""
    raise NotImplementedError
