#include "CSQLite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

static uint32_t added(uint32_t sum, const void *bytes, int count) {
    const unsigned char *byte = bytes;
    for (int index = 0; index < count; index++) sum = (sum ^ byte[index]) * 0x01000193;
    return sum;
}

// The lowest byte first, whatever the machine: the file may be read on another.
static uint32_t added_number(uint32_t sum, uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) sum = (sum ^ (number >> shift & 0xFF)) * 0x01000193;
    return sum;
}

static void sum(sqlite3_context *context, int count, sqlite3_value **values) {
    uint32_t sum = 0x811C9DC5;
    for (int index = 0; index < count; index++) {
        sqlite3_value *value = values[index];
        int type = sqlite3_value_type(value);
        sum = (sum ^ (uint32_t)type) * 0x01000193;
        if (type == SQLITE_INTEGER) sum = added_number(sum, (uint64_t)sqlite3_value_int64(value));
        if (type != SQLITE_TEXT && type != SQLITE_BLOB && type != SQLITE_FLOAT) continue;
        // A number with a fraction, which none of ours has, counts as its text.
        const void *bytes = type == SQLITE_BLOB ? sqlite3_value_blob(value) : sqlite3_value_text(value);
        int length = sqlite3_value_bytes(value);
        sum = added_number(sum, (uint64_t)length);
        if (bytes) sum = added(sum, bytes, length);
    }
    sqlite3_result_int64(context, sum);
}

int waypost_sqlite_add_sum(sqlite3 *db) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    return sqlite3_create_function_v2(db, "waypost_sum", -1, flags, 0, sum, 0, 0, 0);
}

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

/// The last place of which a read has failed.
static _Thread_local struct {
    dev_t device;
    ino_t inode;
    /// In its file, from 0 on.
    int64_t sector;
    /// Its pages that failed, a bit for each; 0 = one of them was read since.
    uint8_t pages;
    int64_t runs;
} failing;

/// Bytes that a medium reads together, and the smallest page of SQLite.
enum { sector_size = 4096, page_size = 512 };

/// The pages of the failing sector that a part of a file has.
static uint8_t pages_of(int64_t offset, int64_t count) {
    uint8_t pages = 0;
    for (int bit = 0; bit < sector_size / page_size; bit++) {
        int64_t start = failing.sector * sector_size + bit * page_size;
        if (offset < start + page_size && offset + count > start) pages |= (uint8_t)(1 << bit);
    }
    return pages;
}

static bool is_failing_file(int file, struct stat *status) {
    return fstat(file, status) == 0 && status->st_dev == failing.device && status->st_ino == failing.inode;
}

static ssize_t counted_at(int file, size_t count, int64_t offset, ssize_t result) {
    struct stat status = {0};
    int64_t known = failed.count;
    counted(result);
    if (failed.count != known) {
        int reason = errno;
        bool is_same = is_failing_file(file, &status) && failing.sector == offset / sector_size && failing.pages;
        if (!is_same) {
            failing.device = status.st_dev;
            failing.inode = status.st_ino;
            failing.sector = offset / sector_size;
            failing.pages = 0;
            failed.run = ++failing.runs;
        }
        failing.pages |= pages_of(offset, (int64_t)count);
        errno = reason;
    } else if (failing.pages && result > 0 && (pages_of(offset, result) & failing.pages)) {
        if (is_failing_file(file, &status)) failing.pages = 0, failed.run = 0;
    }
    return result;
}

static ssize_t count_pread(int file, void *bytes, size_t count, int64_t offset) {
    return counted_at(file, count, offset, system_call.pread(file, bytes, count, offset));
}

static ssize_t count_pread64(int file, void *bytes, size_t count, int64_t offset) {
    return counted_at(file, count, offset, system_call.pread64(file, bytes, count, offset));
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
