#include <sqlite3.h>

// What Swift cannot import: a variadic function, and a destructor that is a cast of -1.

/// Keeps the write-ahead log when the last connection closes, instead of checkpointing and deleting it.
static inline int waypost_sqlite_keep_wal(sqlite3 *db) {
    return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

static inline int waypost_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int length) {
    return sqlite3_bind_text(statement, index, text, length, SQLITE_TRANSIENT);
}

static inline int waypost_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int length) {
    return sqlite3_bind_blob(statement, index, bytes, length, SQLITE_TRANSIENT);
}
