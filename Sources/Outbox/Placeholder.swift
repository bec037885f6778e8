// The durable ordered queue in SQLite.
