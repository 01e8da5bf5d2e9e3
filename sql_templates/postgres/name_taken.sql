-- Whether an unqualified name already means a table or view.
SELECT to_regclass(quote_ident(%(name)s)) IS NOT NULL
