"""Answers that are stored together: a routine more, and no table is changed."""

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing of the tables; routines are made anew with every version."""


def downgrade() -> None:
    """A ledger is never taken away by a migration."""
    raise NotImplementedError
