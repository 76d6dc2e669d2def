"""The bank's ledger in a database: SQLite or PostgreSQL."""
