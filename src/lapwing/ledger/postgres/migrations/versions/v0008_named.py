"""What was bought for blocks of time is found by its name."""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[2] / "sql"


def upgrade() -> None:
    """Run the file, which does not change after a release."""
    op.get_bind().exec_driver_sql((_SQL / "0008_tables.sql").read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    """A migration never removes a ledger."""
    raise NotImplementedError
