"""The functions, relations and types that statements about the catalogue may name. Nothing else reaches the shadow.

A function is listed if it changes nothing, reveals nothing about other sessions, databases or roles, and makes no value much longer than
its arguments. The lists are for PostgreSQL 14 and newer; an older server itself refuses what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_AGGREGATES = """
array_agg avg bit_and bit_or bool_and bool_or corr count covar_pop covar_samp every json_agg json_object_agg jsonb_agg jsonb_object_agg max
min mode percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev
stddev_pop stddev_samp string_agg sum var_pop var_samp variance cume_dist dense_rank first_value lag last_value lead nth_value ntile
percent_rank rank row_number
"""
_NUMBERS = """
abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd degrees div exp factorial floor
gcd lcm ln log log10 min_scale mod pi pow power radians random round scale sign sin sind sinh sqrt tan tand tanh trim_scale trunc
width_bucket float4 float8 int2 int4 int8 numeric oid money
"""
_TEXTS = """
ascii bit_length btrim char_length character_length chr concat concat_ws convert_from convert_to decode encode format initcap left length
lower ltrim md5 octet_length parse_ident position quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like
regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr replace reverse right rtrim sha224
sha256 sha384 sha512 split_part starts_with strpos substr substring text textlen to_ascii to_char to_hex to_number translate upper varchar
bpchar name char bool
"""
_TIMES = """
age clock_timestamp date date_bin date_part date_trunc extract interval isfinite justify_days justify_hours justify_interval make_date
make_interval make_time make_timestamp make_timestamptz now overlaps statement_timestamp time timeofday timestamp timestamptz timetz
timezone to_date to_timestamp transaction_timestamp
"""
_ARRAYS = """
array_append array_cat array_dims array_length array_lower array_ndims array_position array_positions array_prepend array_remove
array_replace array_to_json array_to_string array_upper cardinality enum_first enum_last enum_range generate_series generate_subscripts
int4range int8range numrange daterange tsrange tstzrange isempty lower_inc lower_inf num_nonnulls num_nulls string_to_array string_to_table
trim_array unnest upper_inc upper_inf
"""
_DOCUMENTS = """
json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each json_each_text
json_extract_path json_extract_path_text json_object json_object_keys json_strip_nulls json_to_record json_to_recordset json_typeof
jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
jsonb_extract_path jsonb_extract_path_text jsonb_object jsonb_object_keys jsonb_pretty jsonb_strip_nulls jsonb_to_record
jsonb_to_recordset jsonb_typeof row_to_json to_json to_jsonb
"""
_CATALOGUE = """
aclexplode col_description current_database current_schema current_schemas current_setting current_user session_user format_type
getdatabaseencoding has_any_column_privilege has_column_privilege has_database_privilege has_foreign_data_wrapper_privilege
has_function_privilege has_language_privilege has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege
has_tablespace_privilege has_type_privilege obj_description oidvectortypes pg_available_extension_versions pg_available_extensions
pg_backend_pid pg_char_to_encoding pg_client_encoding pg_collation_for pg_collation_is_visible pg_column_is_updatable pg_column_size
pg_conf_load_time pg_conversion_is_visible pg_database_size pg_encoding_max_length pg_encoding_to_char pg_function_is_visible
pg_get_constraintdef pg_get_expr pg_get_function_arg_default pg_get_function_arguments pg_get_function_identity_arguments
pg_get_function_result pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_partition_constraintdef
pg_get_partkeydef pg_get_publication_tables pg_get_replica_identity_index pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef
pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions pg_get_triggerdef pg_get_userbyid pg_get_viewdef
pg_index_column_has_property pg_index_has_property pg_indexam_has_property pg_indexes_size pg_is_in_recovery pg_is_other_temp_schema
pg_is_wal_replay_paused pg_jit_available pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible
pg_options_to_table pg_partition_ancestors pg_partition_root pg_partition_tree pg_postmaster_start_time pg_relation_is_publishable
pg_relation_is_updatable pg_relation_size pg_sequence_parameters pg_size_bytes pg_size_pretty pg_statistics_obj_is_visible
pg_table_is_visible pg_table_size pg_tablespace_size pg_total_relation_size pg_ts_config_is_visible pg_ts_dict_is_visible
pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible pg_typeof row_security_active shobj_description to_regclass
to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regtype version pg_advisory_unlock_all
"""
FUNCTIONS = frozenset((_AGGREGATES + _NUMBERS + _TEXTS + _TIMES + _ARRAYS + _DOCUMENTS + _CATALOGUE).split())
_SCHEMA_FUNCTIONS_WORDS = """
_pg_char_max_length _pg_char_octet_length _pg_datetime_precision _pg_expandarray _pg_index_position _pg_interval_type
_pg_numeric_precision _pg_numeric_precision_radix _pg_numeric_scale _pg_truetypid _pg_truetypmod
"""
SCHEMA_FUNCTIONS = frozenset(_SCHEMA_FUNCTIONS_WORDS.split())
"""Functions of information_schema."""
PRIVILEGE_FUNCTIONS = frozenset(name for name in FUNCTIONS if name.startswith("has_"))
"""With a role as the first of three arguments, they reveal whether a role exists."""

_FIELDS_WORDS = """
n x grantor grantee privilege_type is_grantable option_name option_value word catcode barelabel catdesc baredesc
"""
FIELDS = frozenset(_FIELDS_WORDS.split())
"""Fields of rows that listed functions return. ``(value).f`` calls a function ``f`` if there is no such field: none of these is one."""

_RELATIONS_WORDS = """
pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_auth_members pg_available_extension_versions pg_available_extensions pg_cast
pg_class pg_collation pg_constraint pg_conversion pg_database pg_default_acl pg_depend pg_description pg_enum pg_event_trigger pg_extension
pg_foreign_data_wrapper pg_foreign_server pg_foreign_table pg_index pg_indexes pg_inherits pg_init_privs pg_language pg_matviews
pg_namespace pg_opclass pg_operator pg_opfamily pg_partitioned_table pg_policies pg_policy pg_proc pg_publication pg_publication_namespace
pg_publication_rel pg_publication_tables pg_range pg_rewrite pg_roles pg_rules pg_sequence pg_sequences pg_settings pg_shdescription
pg_statistic_ext pg_tables pg_tablespace pg_timezone_abbrevs pg_timezone_names pg_transform pg_trigger pg_ts_config pg_ts_config_map
pg_ts_dict pg_ts_parser pg_ts_template pg_type pg_user pg_views
"""
RELATIONS = frozenset(_RELATIONS_WORDS.split())
_SCHEMA_RELATIONS_WORDS = """
administrable_role_authorizations applicable_roles attributes character_sets check_constraint_routine_usage check_constraints
collation_character_set_applicability collations column_column_usage column_domain_usage column_options column_privileges column_udt_usage
columns constraint_column_usage constraint_table_usage data_type_privileges domain_constraints domain_udt_usage domains element_types
enabled_roles foreign_data_wrapper_options foreign_data_wrappers foreign_server_options foreign_servers foreign_table_options
foreign_tables information_schema_catalog_name key_column_usage parameters referential_constraints role_column_grants role_routine_grants
role_table_grants role_udt_grants role_usage_grants routine_column_usage routine_privileges routine_routine_usage routine_sequence_usage
routine_table_usage routines schemata sequences sql_features sql_implementation_info sql_parts sql_sizing table_constraints
table_privileges tables transforms triggered_update_columns triggers udt_privileges usage_privileges user_defined_types
view_column_usage view_routine_usage view_table_usage views
"""
SCHEMA_RELATIONS = frozenset(_SCHEMA_RELATIONS_WORDS.split())

_TYPES_WORDS = """
anyarray bit bool bpchar bytea char cid cidr date daterange float4 float8 inet int2 int2vector int4 int4range int8 int8range interval json
jsonb macaddr macaddr8 money name numeric numrange oid oidvector pg_lsn pg_node_tree regclass regcollation regconfig regdictionary
regnamespace regoper regoperator regproc regprocedure regtype text tid time timestamp timestamptz timetz tsrange tstzrange uuid varbit
varchar xid xid8
"""
TYPES = frozenset(_TYPES_WORDS.split())
SCHEMA_TYPES = frozenset({"cardinal_number", "character_data", "sql_identifier", "time_stamp", "yes_or_no"})

# Databases of one server show each other's names, and so do roles. These conditions let a session see its own.
_OWN_DATABASE = "(SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())"
_OWNER = "(SELECT d.datdba FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())"
_OWN_ROLES = f"(SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.oid = 10 OR r.rolname = CURRENT_USER OR r.oid = {_OWNER})"
FILTERS: Mapping[str, str] = {
    "pg_database": "datname = pg_catalog.current_database()",
    "pg_roles": f"oid IN {_OWN_ROLES}",
    "pg_user": f"usesysid IN {_OWN_ROLES}",
    "pg_auth_members": f"roleid IN {_OWN_ROLES} AND member IN {_OWN_ROLES}",
    "pg_shdescription": f"objoid = {_OWN_DATABASE}",
}
"""Relations of which a session sees only these rows."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A function that is called only for what a session may see, and is NULL for the rest.

    The argument is compared once and never passed on: a value that changes between evaluations gains nothing.
    """

    arguments: int
    template: str
    """The text for a call; ``{0}`` and ``{1}`` are its arguments."""


def _of_own_database(call: str) -> str:
    return (
        f"CASE CAST({{0}} AS text) WHEN CAST(pg_catalog.current_database() AS text) THEN {call}"
        f" WHEN CAST({_OWN_DATABASE} AS text) THEN {call} END"
    )


GUARDS: Mapping[str, Guard] = {
    "pg_database_size": Guard(1, _of_own_database("pg_catalog.pg_database_size(pg_catalog.current_database())")),
    "has_database_privilege": Guard(2, _of_own_database("pg_catalog.has_database_privilege(pg_catalog.current_database(), {1})")),
    "shobj_description": Guard(2, _of_own_database(f"pg_catalog.shobj_description({_OWN_DATABASE}, {{1}})")),
    "pg_get_userbyid": Guard(
        1,
        f"CASE {{0}} WHEN 10 THEN pg_catalog.pg_get_userbyid(10) WHEN {_OWNER} THEN pg_catalog.pg_get_userbyid({_OWNER})"
        " WHEN (SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname = CURRENT_USER) THEN CURRENT_USER END",
    ),
}
