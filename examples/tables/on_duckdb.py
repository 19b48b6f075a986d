"""Release a table of DuckDB: read twice, it is one release."""

from __future__ import annotations

import duckdb
from common import answers, people, release

connection = duckdb.connect()
table = people()
connection.register("people", table)
relation = release().duckdb(connection, "people")

once, again = relation.to_arrow_table(), relation.to_arrow_table()
print("the same rows again:", once.equals(again))
answers(once, table)
