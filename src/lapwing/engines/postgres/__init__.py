"""PostgreSQL: versions as schemas beside the owner's tables, read in place.

A version is written by ``prepare_version`` (owner's act, as a role that may read the sources) and read by ``PostgresSnapshot``: read-only
transactions, one snapshot per plan, fixed settings, as a role that may read the version only. Needs ``lapwing[postgres]``.
"""

from lapwing.engines.postgres.engine import PostgresEngine
from lapwing.engines.postgres.prepare import prepare_version
from lapwing.engines.postgres.snapshot import PostgresSnapshot

__all__ = ["PostgresEngine", "PostgresSnapshot", "prepare_version"]
