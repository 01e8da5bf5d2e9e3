"""Functions that may reach the shadow: a list of our own, not all that a parser happens to know."""

from __future__ import annotations

FUNCTIONS = frozenset(
    {
        "_pg_char_max_length",
        "_pg_datetime_precision",
        "_pg_expandarray",
        "_pg_numeric_precision",
        "_pg_numeric_scale",
        "_pg_truetypid",
        "_pg_truetypmod",
        "abs",
        "acldefault",
        "aclexplode",
        "age",
        "array_lower",
        "array_ndims",
        "array_remove",
        "array_replace",
        "array_to_json",
        "array_to_string",
        "array_upper",
        "bit_length",
        "btrim",
        "char_length",
        "col_description",
        "current_catalog",
        "current_role",
        "current_schemas",
        "current_setting",
        "daterange",
        "div",
        "enum_range",
        "format",
        "format_type",
        "generate_subscripts",
        "get_byte",
        "getdatabaseencoding",
        "has_any_column_privilege",
        "has_column_privilege",
        "has_database_privilege",
        "has_foreign_data_wrapper_privilege",
        "has_function_privilege",
        "has_language_privilege",
        "has_schema_privilege",
        "has_sequence_privilege",
        "has_server_privilege",
        "has_table_privilege",
        "has_tablespace_privilege",
        "has_type_privilege",
        "inet_client_addr",
        "inet_client_port",
        "inet_server_addr",
        "inet_server_port",
        "json_agg",
        "json_array_elements",
        "json_array_elements_text",
        "json_build_array",
        "json_build_object",
        "json_object_agg",
        "jsonb_agg",
        "jsonb_build_object",
        "jsonb_object_agg",
        "obj_description",
        "parse_ident",
        "pg_advisory_unlock_all",
        "pg_backend_pid",
        "pg_char_to_encoding",
        "pg_client_encoding",
        "pg_collation_for",
        "pg_collation_is_visible",
        "pg_conf_load_time",
        "pg_conversion_is_visible",
        "pg_database_size",
        "pg_describe_object",
        "pg_encoding_to_char",
        "pg_function_is_visible",
        "pg_get_constraintdef",
        "pg_get_expr",
        "pg_get_function_arg_default",
        "pg_get_function_arguments",
        "pg_get_function_identity_arguments",
        "pg_get_function_result",
        "pg_get_function_sqlbody",
        "pg_get_functiondef",
        "pg_get_indexdef",
        "pg_get_keywords",
        "pg_get_partition_constraintdef",
        "pg_get_partkeydef",
        "pg_get_ruledef",
        "pg_get_serial_sequence",
        "pg_get_statisticsobjdef",
        "pg_get_statisticsobjdef_columns",
        "pg_get_statisticsobjdef_expressions",
        "pg_get_triggerdef",
        "pg_get_userbyid",
        "pg_get_viewdef",
        "pg_has_role",
        "pg_identify_object",
        "pg_index_column_has_property",
        "pg_indexam_has_property",
        "pg_indexes_size",
        "pg_is_in_recovery",
        "pg_is_other_temp_schema",
        "pg_my_temp_schema",
        "pg_opclass_is_visible",
        "pg_operator_is_visible",
        "pg_opfamily_is_visible",
        "pg_options_to_table",
        "pg_partition_ancestors",
        "pg_partition_tree",
        "pg_postmaster_start_time",
        "pg_relation_filenode",
        "pg_relation_is_publishable",
        "pg_relation_is_updatable",
        "pg_relation_size",
        "pg_sequence_last_value",
        "pg_size_pretty",
        "pg_statistics_obj_is_visible",
        "pg_table_is_visible",
        "pg_table_size",
        "pg_tablespace_location",
        "pg_tablespace_size",
        "pg_timezone_names",
        "pg_total_relation_size",
        "pg_ts_config_is_visible",
        "pg_ts_dict_is_visible",
        "pg_ts_parser_is_visible",
        "pg_ts_template_is_visible",
        "pg_type_is_visible",
        "pg_typeof",
        "quote_ident",
        "quote_literal",
        "quote_nullable",
        "regexp_match",
        "regexp_matches",
        "regexp_split_to_array",
        "row",
        "row_number",
        "row_to_json",
        "set_config",
        "shobj_description",
        "string_to_array",
        "strpos",
        "substr",
        "timezone",
        "to_char",
        "to_json",
        "to_jsonb",
        "to_regclass",
        "to_regnamespace",
        "to_regproc",
        "to_regrole",
        "to_regtype",
        "translate",
        "txid_current",
        "unnest",
        "version",
    }
)
"""Functions of PostgreSQL that clients call on the catalogs."""

SQL_FUNCTIONS = frozenset(
    """
    array_agg array_append array_cat array_length array_position array_prepend ascii avg bit_and
    bit_or bool_and bool_or cardinality cast ceil ceiling character_length chr coalesce concat
    concat_ws count cume_dist current_database current_schema current_user date date_part
    date_trunc decode dense_rank encode every exists exp extract first_value floor generate_series
    greatest initcap json_extract_path json_extract_path_text lag last_value lead least left length
    like ln log lower ltrim make_interval max md5 min mod now nth_value ntile nullif overlay
    percent_rank position power random rank regexp_count regexp_like regexp_replace regexp_substr
    replace reverse right round rtrim session_user sign split_part sqrt starts_with stddev
    string_agg substring sum to_date to_hex to_number to_timestamp trim trunc upper variance
    """.split()  # noqa: SIM905 - so many words are best read as text
)
"""Functions of SQL itself, in the form that stands behind a schema's name."""

NODES = frozenset(
    """
    Abs And Array ArrayAgg ArrayAppend ArrayConcat ArrayContainedBy ArrayContainsAll
    ArrayOverlaps ArrayPosition ArrayPrepend ArrayRemove ArraySize ArrayToString Ascii Avg
    BitLength BitwiseAndAgg BitwiseOrAgg Case Cast Ceil Chr Coalesce Collate Concat ConcatWs
    Count CumeDist CurrentCatalog CurrentDatabase CurrentDate CurrentRole CurrentSchema
    CurrentSchemas CurrentTime CurrentTimestamp CurrentUser CurrentVersion Date Decode
    DenseRank Encode Exists Exp Explode ExplodingGenerateSeries Extract FirstValue Floor Format
    GenerateSeries Greatest GroupConcat Hex If Initcap JSONArray JSONArrayAgg
    JSONBContainsAllTopKeys JSONBContainsAnyTopKeys JSONBContainsTopKey JSONBExtract
    JSONBExtractScalar JSONBObjectAgg JSONExtract JSONExtractScalar JSONObject JSONObjectAgg
    Lag LastValue Lead Least Left Length Ln Localtime Localtimestamp Log LogicalAnd LogicalOr
    Lower MD5 MakeInterval Max Min NthValue Ntile Nullif Or Overlay PercentRank Pow Rand Rank
    RegexpCount RegexpILike RegexpLike RegexpReplace RegexpSubstr Replace Reverse Right Round
    RowNumber SessionUser Sign SplitPart Sqrt StartsWith Stddev StrPosition StrToDate StrToTime
    StringToArray Substring Sum TimeToStr TimestampTrunc ToNumber Translate Trim Trunc
    UnixToTime Unnest Upper Variance
    """.split()  # noqa: SIM905 - so many words are best read as text
)
"""What the parser keeps as a class of its own, operators and forms such as CASE among it."""
