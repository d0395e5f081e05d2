"""Reservations and answers of several data sets in one statement: new routines, and no change of tables."""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change no table; every version recreates the routines."""


def downgrade() -> None:
    """A migration never removes a ledger."""
    raise NotImplementedError
