"""Answers that are stored together: a new routine, and no change of tables."""

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change no table; every version recreates the routines."""


def downgrade() -> None:
    """A migration never removes a ledger."""
    raise NotImplementedError
