#include "CSQLite.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int waypost_sqlite_checkpoint(sqlite3 *db, int mode, waypost_sqlite_log *log) {
    int frames = -1, copied = -1;
    int code = sqlite3_wal_checkpoint_v2(db, "main", mode, &frames, &copied);
    if (frames >= 0 && frames == copied && (code == SQLITE_OK || code == SQLITE_BUSY)) log->frames = 0;
    return code;
}

static int committed(void *context, sqlite3 *db, const char *name, int frames) {
    waypost_sqlite_log *log = context;
    (void)name;
    log->frames = frames;
    // As SQLite's own: what fails is tried again by the next commit.
    if (log->limit > 0 && frames >= log->limit) waypost_sqlite_checkpoint(db, SQLITE_CHECKPOINT_PASSIVE, log);
    return SQLITE_OK;
}

void waypost_sqlite_watch_log(sqlite3 *db, waypost_sqlite_log *log) { sqlite3_wal_hook(db, committed, log); }

// As SQLite calls them: with offsets of 64 bits everywhere.
typedef int (*open_call)(const char *path, int flags, int mode);
typedef ssize_t (*read_call)(int file, void *bytes, size_t count);
typedef ssize_t (*pread_call)(int file, void *bytes, size_t count, int64_t offset);
typedef ssize_t (*pwrite_call)(int file, const void *bytes, size_t count, int64_t offset);

/// What SQLite called before. Wrappers call on, so that a preloaded library still sees the calls that it expects.
static struct {
    open_call open;
    read_call read;
    pread_call pread, pread64;
    pwrite_call pwrite, pwrite64;
} system_call;

static _Thread_local waypost_failed_reads failed, failed_writes;

waypost_failed_reads waypost_sqlite_failed_reads(void) { return failed; }
waypost_failed_reads waypost_sqlite_failed_writes(void) { return failed_writes; }

static ssize_t counted_in(waypost_failed_reads *counter, ssize_t result) {
    if (result < 0 && errno != EINTR) {
        counter->count++;
        counter->reason = errno;
    }
    return result;
}

static ssize_t counted(ssize_t result) { return counted_in(&failed, result); }

// SQLite opens its own files without following links, and others, such as a directory, with.
static int open_regular(const char *path, int flags, int mode) {
    int file = system_call.open(path, flags | O_NONBLOCK, mode);
    if (file < 0) {
        if (errno == ENOSPC || errno == EDQUOT) counted_in(&failed_writes, file);
        return file;
    }
    struct stat status;
    if (!(flags & O_NOFOLLOW) || (fstat(file, &status) == 0 && S_ISREG(status.st_mode))) return file;
    close(file);
    errno = ENODEV;
    return -1;
}

static ssize_t count_read(int file, void *bytes, size_t count) { return counted(system_call.read(file, bytes, count)); }

static ssize_t count_pread(int file, void *bytes, size_t count, int64_t offset) {
    return counted(system_call.pread(file, bytes, count, offset));
}

static ssize_t count_pread64(int file, void *bytes, size_t count, int64_t offset) {
    return counted(system_call.pread64(file, bytes, count, offset));
}

/// - Returns: 0, or errno.
static int allocate(int file, size_t count, int64_t offset) {
    const int64_t page = 4096;
    if (count != 1 || (offset + 1) % page != 0) return 0;
    int error = posix_fallocate(file, (off_t)(offset + 1 - page), (off_t)page);
    return error == EINVAL || error == EOPNOTSUPP ? 0 : error;
}

static ssize_t allocating_pwrite(pwrite_call call, int file, const void *bytes, size_t count, int64_t offset) {
    int error = allocate(file, count, offset);
    if (error != 0) {
        errno = error;
        return counted_in(&failed_writes, -1);
    }
    return counted_in(&failed_writes, call(file, bytes, count, offset));
}

static ssize_t allocate_pwrite(int file, const void *bytes, size_t count, int64_t offset) {
    return allocating_pwrite(system_call.pwrite, file, bytes, count, offset);
}

static ssize_t allocate_pwrite64(int file, const void *bytes, size_t count, int64_t offset) {
    return allocating_pwrite(system_call.pwrite64, file, bytes, count, offset);
}

#define WRAP(name, wrapper)                                                                     \
    do {                                                                                        \
        sqlite3_syscall_ptr found = vfs->xGetSystemCall(vfs, #name);                            \
        if (found && found != (sqlite3_syscall_ptr)wrapper) {                                   \
            system_call.name = (__typeof__(system_call.name))found;                             \
            vfs->xSetSystemCall(vfs, #name, (sqlite3_syscall_ptr)wrapper);                      \
        }                                                                                       \
    } while (0)

void waypost_sqlite_wrap_calls(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(0);
    if (!vfs || vfs->iVersion < 3 || !vfs->xGetSystemCall || !vfs->xSetSystemCall) return;
    // A build of SQLite has some of these: the others are not found.
    WRAP(open, open_regular);
    WRAP(read, count_read);
    WRAP(pread, count_pread);
    WRAP(pread64, count_pread64);
    WRAP(pwrite, allocate_pwrite);
    WRAP(pwrite64, allocate_pwrite64);
}
