"""Hold what stewards say: tables, registers, preferences, and where rows are."""
