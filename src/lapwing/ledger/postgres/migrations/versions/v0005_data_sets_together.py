"""Reservations and answers of several data sets in one statement: routines, and no table is changed."""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing of the tables; routines are made anew with every version."""


def downgrade() -> None:
    """A ledger is never taken away by a migration."""
    raise NotImplementedError
