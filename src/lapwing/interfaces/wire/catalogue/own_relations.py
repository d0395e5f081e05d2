"""Relations of the catalogue that are replaced by our own queries: those that show a session only its own rows, and those without rows.

Statistics, activity, locks and what belongs to other databases have no rows here. The relation itself is not read, because it would show
other sessions: the query in its place has its columns, those of PostgreSQL 15 and a few later ones, and no FROM.
"""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.interfaces.wire.catalogue.words import FILTERS

_TABLES = """
relid oid, schemaname name, relname name, seq_scan int8, last_seq_scan timestamptz, seq_tup_read int8, idx_scan int8, last_idx_scan
timestamptz, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_tup_newpage_upd int8, n_live_tup
int8, n_dead_tup int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum timestamptz,
last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count int8
"""
_INDEXES = """
relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, last_idx_scan timestamptz, idx_tup_read int8,
idx_tup_fetch int8
"""
_TABLES_READ = """
relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, idx_blks_hit int8, toast_blks_read
int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8
"""
_INDEXES_READ = "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, idx_blks_hit int8"
_SEQUENCES_READ = "relid oid, schemaname name, relname name, blks_read int8, blks_hit int8"
_COLUMNS: Mapping[str, str] = {
    **{f"pg_stat_{whose}_tables": _TABLES for whose in ("all", "sys", "user")},
    **{f"pg_stat_{whose}_indexes": _INDEXES for whose in ("all", "sys", "user")},
    **{f"pg_statio_{whose}_tables": _TABLES_READ for whose in ("all", "sys", "user")},
    **{f"pg_statio_{whose}_indexes": _INDEXES_READ for whose in ("all", "sys", "user")},
    **{f"pg_statio_{whose}_sequences": _SEQUENCES_READ for whose in ("all", "sys", "user")},
    "pg_stat_user_functions": "funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8",
    "pg_stat_activity": """
        datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, client_addr inet,
        client_hostname text, client_port int4, backend_start timestamptz, xact_start timestamptz, query_start timestamptz, state_change
        timestamptz, wait_event_type text, wait_event text, state text, backend_xid xid, backend_xmin xid, query_id int8, query text,
        backend_type text
    """,
    "pg_stat_database": """
        datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read int8, blks_hit int8, tup_returned int8,
        tup_fetched int8, tup_inserted int8, tup_updated int8, tup_deleted int8, conflicts int8, temp_files int8, temp_bytes int8, deadlocks
        int8, checksum_failures int8, checksum_last_failure timestamptz, blk_read_time float8, blk_write_time float8, session_time float8,
        active_time float8, idle_in_transaction_time float8, sessions int8, sessions_abandoned int8, sessions_fatal int8, sessions_killed
        int8, stats_reset timestamptz
    """,
    "pg_stat_ssl": "pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, client_serial numeric, issuer_dn text",
    "pg_stat_gssapi": "pid int4, gss_authenticated bool, principal text, encrypted bool, credentials_delegated bool",
    "pg_stat_replication": """
        pid int4, usesysid oid, usename name, application_name text, client_addr inet, client_hostname text, client_port int4, backend_start
        timestamptz, backend_xmin xid, state text, sent_lsn pg_lsn, write_lsn pg_lsn, flush_lsn pg_lsn, replay_lsn pg_lsn, write_lag
        interval, flush_lag interval, replay_lag interval, sync_priority int4, sync_state text, reply_time timestamptz
    """,
    "pg_stats": """
        schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4, n_distinct float4, most_common_vals
        _text, most_common_freqs _float4, histogram_bounds _text, correlation float4, most_common_elems _text, most_common_elem_freqs
        _float4, elem_count_histogram _float4
    """,
    "pg_locks": """
        locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid xid, classid oid, objid oid,
        objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, waitstart timestamptz
    """,
    "pg_cursors": "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time timestamptz",
    "pg_prepared_statements": """
        name text, statement text, prepare_time timestamptz, parameter_types _regtype, result_types _regtype, from_sql bool, generic_plans
        int8, custom_plans int8
    """,
    "pg_prepared_xacts": "transaction xid, gid text, prepared timestamptz, owner name, database name",
    "pg_replication_slots": """
        slot_name name, plugin name, slot_type text, datoid oid, database name, temporary bool, active bool, active_pid int4, xmin xid,
        catalog_xmin xid, restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status text, safe_wal_size int8, two_phase bool
    """,
    "pg_seclabel": "objoid oid, classoid oid, objsubid int4, provider text, label text",
    "pg_seclabels": "objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider text, label text",
    "pg_shseclabel": "objoid oid, classoid oid, provider text, label text",
    "pg_subscription": """
        oid oid, subdbid oid, subskiplsn pg_lsn, subname name, subowner oid, subenabled bool, subbinary bool, substream bool,
        subtwophasestate char, subdisableonerr bool, subconninfo text, subslotname name, subsynccommit text, subpublications _text
    """,
    "pg_user_mappings": "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions _text",
    "pg_db_role_setting": "setdatabase oid, setrole oid, setconfig _text",
    "pg_group": "groname name, grosysid oid, grolist _oid",
}


def _no_rows(columns: str) -> str:
    named = (column.split() for column in columns.split(","))
    nulls = ", ".join(f'CAST(NULL AS pg_catalog."{kind}") AS "{name}"' for name, kind in named)
    return f"(SELECT {nulls} WHERE FALSE)"


EMPTY: Mapping[str, str] = {relation: _no_rows(columns) for relation, columns in _COLUMNS.items()}
"""The replacement for each relation that has no rows here."""
INSTEAD: Mapping[str, str] = {
    **EMPTY,
    **{relation: f'(SELECT * FROM pg_catalog."{relation}" WHERE {condition})' for relation, condition in FILTERS.items()},
}
"""The replacement for each relation that a session must not read directly."""
