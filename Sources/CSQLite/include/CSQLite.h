#pragma once

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// What Swift cannot import: a variadic function, a destructor that is a cast of -1, system calls of SQLite's own.

/// Keeps the write-ahead log when the last connection closes, instead of checkpointing and deleting it.
static inline int waypost_sqlite_keep_wal(sqlite3 *db) {
    return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

/// The file may belong to another user, or be damaged. What is in its schema calls no function that does more than compute, runs by
/// itself never, and cannot be written past the rules; a statement reaches no other file, and no value is larger than any of ours.
static inline int waypost_sqlite_distrust(sqlite3 *db) {
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    const int switches[][2] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},
    };
    for (unsigned index = 0; index < sizeof switches / sizeof *switches; index++) {
        int code = sqlite3_db_config(db, switches[index][0], switches[index][1], (int *)0);
        if (code != SQLITE_OK) return code;
    }
    return SQLITE_OK;
}

/// Tables of a schema that is damaged are used as far as they could be read, and a file may be shorter than its header says.
static inline int waypost_sqlite_read_what_is_left(sqlite3 *db) {
    int code = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, (int *)0);
    return code == SQLITE_OK ? sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, (int *)0) : code;
}

/// Adds `waypost_sum(…)` to a connection: FNV-1a, 32 bits, over the values of its arguments, with the type and the length of each.
int waypost_sqlite_add_sum(sqlite3 *db);

/// Lets the file grow, and keeps its size, in steps of this many bytes. A VFS that cannot does as before.
static inline void waypost_sqlite_grow_by(sqlite3 *db, int bytes) {
    sqlite3_file_control(db, "main", SQLITE_FCNTL_CHUNK_SIZE, &bytes);
}

/// Gives the file at least this many bytes of disk.
static inline int waypost_sqlite_allocate(sqlite3 *db, int64_t bytes) {
    sqlite3_int64 size = bytes;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_SIZE_HINT, &size);
}

/// The database file itself, past log and cache; NULL without one.
static inline sqlite3_file *waypost_sqlite_file(sqlite3 *db) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return code == SQLITE_OK && file && file->pMethods ? file : 0;
}

/// Whether the name of the database leads to another file by now, or to none.
static inline int waypost_sqlite_has_moved(sqlite3 *db) {
    int moved = 0;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved;
}

/// Bytes; 0 where that cannot be told.
static inline int64_t waypost_sqlite_file_size(sqlite3 *db) {
    sqlite3_file *file = waypost_sqlite_file(db);
    sqlite3_int64 size = 0;
    return file && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : 0;
}

static inline int waypost_sqlite_read_file(sqlite3 *db, void *bytes, int count, int64_t offset) {
    sqlite3_file *file = waypost_sqlite_file(db);
    return file ? file->pMethods->xRead(file, bytes, count, offset) : SQLITE_NOTFOUND;
}

/// The write-ahead log of a connection that has read or written something; NULL without one.
static inline sqlite3_file *waypost_sqlite_log_file(sqlite3 *db) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    return code == SQLITE_OK && file && file->pMethods ? file : 0;
}

/// Bytes; 0 without a log, and where that cannot be told.
static inline int64_t waypost_sqlite_log_size(sqlite3 *db) {
    sqlite3_file *file = waypost_sqlite_log_file(db);
    sqlite3_int64 size = 0;
    return file && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : 0;
}

/// Whether SQLite fills the last sector of a commit with copies of its last frame.
static inline int waypost_sqlite_pads_log(sqlite3 *db) {
    sqlite3_file *file = waypost_sqlite_file(db);
    return file && !(file->pMethods->xDeviceCharacteristics(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE);
}

static inline int waypost_sqlite_read_log(sqlite3 *db, void *bytes, int count, int64_t offset) {
    sqlite3_file *file = waypost_sqlite_log_file(db);
    return file ? file->pMethods->xRead(file, bytes, count, offset) : SQLITE_NOTFOUND;
}

static inline int waypost_sqlite_write_log(sqlite3 *db, const void *bytes, int count, int64_t offset) {
    sqlite3_file *file = waypost_sqlite_log_file(db);
    return file ? file->pMethods->xWrite(file, bytes, count, offset) : SQLITE_NOTFOUND;
}

/// Cuts a log off behind this many bytes, and flushes that. Nobody may need what is there.
static inline int waypost_sqlite_cut_log(sqlite3 *db, int64_t size) {
    sqlite3_file *file = waypost_sqlite_log_file(db);
    if (!file) return SQLITE_NOTFOUND;
    int code = file->pMethods->xTruncate(file, size);
    return code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}

/// Makes a log that was cut off as long as it was: what is missing reads as zeros, and not as an error.
static inline void waypost_sqlite_pad_log(sqlite3 *db, int64_t size) {
    sqlite3_file *file = waypost_sqlite_log_file(db);
    const char zero = 0;
    if (file && size > 0 && waypost_sqlite_log_size(db) < size) file->pMethods->xWrite(file, &zero, 1, size - 1);
}

/// For a file that no other connection uses: what SQLite holds of it in memory is not changed.
static inline int waypost_sqlite_write_file(sqlite3 *db, const void *bytes, int count, int64_t offset) {
    sqlite3_file *file = waypost_sqlite_file(db);
    return file ? file->pMethods->xWrite(file, bytes, count, offset) : SQLITE_NOTFOUND;
}

/// Whether a rollback journal ends with the name of another file, which SQLite deletes once it has played the journal back.
/// No journal of a queue does: that is how a transaction over several databases is told.
static inline int waypost_sqlite_journal_names_file(const char *vfs_name, const char *journal) {
    static const unsigned char mark[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    sqlite3_vfs *vfs = sqlite3_vfs_find(vfs_name);
    sqlite3_file *file = vfs ? (sqlite3_file *)calloc(1, (size_t)vfs->szOsFile) : 0;
    if (!file) return 0;
    int names = 0;
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_NOFOLLOW;
    if (vfs->xOpen(vfs, journal, file, flags, 0) == SQLITE_OK) {
        sqlite3_int64 size = 0;
        unsigned char end[sizeof mark];
        names = file->pMethods->xFileSize(file, &size) == SQLITE_OK && size > (int)sizeof end
            && file->pMethods->xRead(file, end, sizeof end, size - (int)sizeof end) == SQLITE_OK
            && memcmp(end, mark, sizeof end) == 0;
    }
    if (file->pMethods) file->pMethods->xClose(file);
    free(file);
    return names;
}

static inline int waypost_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int length) {
    return sqlite3_bind_text(statement, index, text, length, SQLITE_TRANSIENT);
}

static inline int waypost_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int length) {
    return sqlite3_bind_blob(statement, index, bytes, length, SQLITE_TRANSIENT);
}

/// How far a connection has written the log.
typedef struct {
    /// A commit that makes the log this many frames long copies it back into the database; 0 = none does.
    int32_t limit;
    /// As of the last commit; 0 = none was made, or the database has all of them.
    int32_t frames;
} waypost_sqlite_log;

/// Replaces the automatic checkpoint of a connection by one that counts.
/// - log: as long as the connection is open.
void waypost_sqlite_watch_log(sqlite3 *db, waypost_sqlite_log *log);

/// Copies the log back into the database.
/// - mode: SQLITE_CHECKPOINT_PASSIVE and so on.
/// - Returns: SQLITE_BUSY where another connection kept some of it from being done.
int waypost_sqlite_checkpoint(sqlite3 *db, int mode, waypost_sqlite_log *log);

/// Reads of this thread that the medium has failed, below SQLite.
typedef struct {
    int64_t count;
    /// Of the last one.
    int32_t reason;
    /// Names the failures of one place of a file that follow each other, while no read of it succeeds; 0 = the place that failed last
    /// was read since. Only of reads.
    int64_t run;
} waypost_failed_reads;

/// A running statement reports a page that could not be read as SQLITE_CORRUPT, as it does a damaged one. These counts, of the
/// VFS of the system, tell the two apart.
waypost_failed_reads waypost_sqlite_failed_reads(void);

/// Writes of this thread that failed below SQLite, and files that found no room: SQLite has one code for several reasons.
waypost_failed_reads waypost_sqlite_failed_writes(void);

/// Puts wrappers around SQLite's own system calls. Call once, before the first connection.
///
/// Reads and writes that fail are counted. What is no regular file is not opened: a pipe would be waited for. The index of the write-ahead log is given whole pages of disk: SQLite writes the last byte of each
/// 4 KiB of it and maps them. On a file system with smaller blocks the others have no place yet, and a disk that is full then ends
/// the process with SIGBUS when they are touched.
void waypost_sqlite_wrap_calls(void);
