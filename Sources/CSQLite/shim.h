#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <unistd.h>

// What Swift cannot import: a variadic function, a destructor that is a cast of -1, a system call of SQLite's own.

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

/// As SQLite calls it: with offsets of 64 bits everywhere.
static inline ssize_t waypost_sqlite_pwrite(int file, const void *bytes, size_t count, int64_t offset) {
    const int64_t page = 4096;
    if (count == 1 && (offset + 1) % page == 0) {
        int error = posix_fallocate(file, (off_t)(offset + 1 - page), (off_t)page);
        if (error != 0 && error != EINVAL && error != EOPNOTSUPP) {
            errno = error;
            return -1;
        }
    }
    return pwrite(file, bytes, count, (off_t)offset);
}

/// Gives the index of the write-ahead log whole pages of disk.
///
/// SQLite writes the last byte of each 4 KiB of it and maps them. On a file system with smaller blocks the others have no
/// place yet, and a disk that is full then ends the process with SIGBUS when they are touched. Call once, before the first
/// connection.
static inline void waypost_sqlite_allocate_index(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(0);
    const char *names[] = {"pwrite", "pwrite64"};
    if (!vfs || vfs->iVersion < 3 || !vfs->xGetSystemCall || !vfs->xSetSystemCall) return;
    for (int index = 0; index < 2; index++) {
        if (vfs->xGetSystemCall(vfs, names[index])) {
            vfs->xSetSystemCall(vfs, names[index], (sqlite3_syscall_ptr)waypost_sqlite_pwrite);
        }
    }
}
