SET search_path = schema_list
