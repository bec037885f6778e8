/* Preloaded into the daemon by scripts/storm and others: a wall clock that steps and a disk that refuses, both by the word of another
   process, which writes them into the file that $WAYPOST_SHIM_CONTROL names. Only files below $WAYPOST_SHIM_DISK are
   refused. The monotonic and boot clocks are left alone. With $WAYPOST_SHIM_SYNCHRONISED the wall clock counts as synchronised.
   With $WAYPOST_SHIM_JOURNAL each write, flush, truncation, renaming
   and removal of those files is noted there, after it was done: from that scripts/proof/card.py makes what a medium may hold
   that has not written everything yet, or in another order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { healthy, full, eio_writes, eio_flushes, read_only, lying, eio_reads, eio_all };

/* As scripts/proof/daemon.py packs it. */
static struct control {
    volatile int64_t clock_offset_s;
    volatile int32_t disk;
    volatile int32_t per_mille;
    volatile int64_t refused;
    /* The last of so many reads, writes or flushes fails, once; 0 = none. */
    volatile int64_t reads_left, writes_left, flushes_left;
} none, *control = &none;
static const char *disk = "";
static int journal = -1;
static uint64_t draw = 88172645463325252u;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("WAYPOST_SHIM_JOURNAL");
    if (path) journal = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    path = getenv("WAYPOST_SHIM_CONTROL");
    if (getenv("WAYPOST_SHIM_DISK")) disk = strdup(getenv("WAYPOST_SHIM_DISK"));
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *map = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) control = map;
    close(fd);
    draw ^= (uint64_t)getpid() << 17;
}

#define NEXT(name)                                          \
    static __typeof__(&name) next;                          \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t id, struct timespec *at) {
    NEXT(clock_gettime);
    int result = next(id, at);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += control->clock_offset_s;
    return result;
}

int gettimeofday(struct timeval *at, void *zone) {
    NEXT(gettimeofday);
    int result = next(at, zone);
    if (result == 0) at->tv_sec += control->clock_offset_s;
    return result;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

int adjtimex(struct timex *state) {
    NEXT(adjtimex);
    // Also where the kernel may not be asked, as in a container.
    int result = next(state);
    if (!getenv("WAYPOST_SHIM_SYNCHRONISED")) return result;
    state->status &= ~STA_UNSYNC;
    state->maxerror = 0;
    return TIME_OK;
}

/* - path: PATH_MAX bytes, set to what fd is open on.
   - Returns: its length; 0 for a file that is not below the disk. */
static size_t queue_path(int fd, char *path) {
    char link[32];
    const char digits[] = "0123456789";
    char *end = link + sizeof link - 1;
    *end = 0;
    do *--end = digits[fd % 10];
    while (fd /= 10);
    end -= 14;
    memcpy(end, "/proc/self/fd/", 14);
    ssize_t length = readlink(end, path, PATH_MAX - 1);
    size_t prefix = strlen(disk);
    return prefix && length >= (ssize_t)prefix && memcmp(path, disk, prefix) == 0 ? length : 0;
}

static int is_queue(int fd) {
    char path[PATH_MAX];
    return queue_path(fd, path) > 0;
}

static void note_path(char what, const char *path, size_t length, int64_t offset, const void *bytes, int64_t count) {
    struct __attribute__((packed)) { char what; uint32_t length; int64_t offset, count; } head = {what, length, offset, count};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)path, length}, {(void *)bytes, bytes ? count : 0}};
    if (writev(journal, parts, 3) < 0) abort();
}

/* w = written, f = flushed, t = truncated to offset, u = removed, r = renamed to the bytes. */
static void note(char what, int fd, int64_t offset, const void *bytes, int64_t count) {
    char path[PATH_MAX];
    size_t length = journal < 0 ? 0 : queue_path(fd, path);
    if (length) note_path(what, path, length, offset, bytes, count);
}

static int struck(int fd) {
    draw ^= draw << 13, draw ^= draw >> 7, draw ^= draw << 17;
    if (draw % 1000 >= (uint64_t)control->per_mille || !is_queue(fd)) return 0;
    control->refused++;
    return 1;
}

/* Counts a call of a kind of which one is to fail. */
static int is_last(volatile int64_t *left, int fd) {
    if (*left <= 0 || !is_queue(fd) || --*left > 0) return 0;
    control->refused++;
    return 1;
}

/* 0, or the error with which a write fails. */
static int write_error(int fd) {
    if (is_last(&control->writes_left, fd)) return EIO;
    switch (control->disk) {
    case full: return struck(fd) ? ENOSPC : 0;
    case eio_writes: case eio_all: return struck(fd) ? EIO : 0;
    case read_only: return struck(fd) ? EROFS : 0;
    default: return 0;
    }
}

#define REFUSE(error)                                       \
    do {                                                    \
        int refused_with = (error);                         \
        if (refused_with) return errno = refused_with, -1;  \
    } while (0)

/* 0, or the error with which a read fails. */
static int read_error(int fd) {
    if (is_last(&control->reads_left, fd)) return EIO;
    return (control->disk == eio_reads || control->disk == eio_all) && struck(fd) ? EIO : 0;
}

static int flush_error(int fd) {
    if (is_last(&control->flushes_left, fd)) return EIO;
    return (control->disk == eio_flushes || control->disk == eio_all) && struck(fd) ? EIO : 0;
}

ssize_t read(int fd, void *bytes, size_t count) {
    NEXT(read);
    REFUSE(read_error(fd));
    return next(fd, bytes, count);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset) {
    NEXT(pread);
    REFUSE(read_error(fd));
    return next(fd, bytes, count, offset);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t offset) {
    NEXT(pread64);
    REFUSE(read_error(fd));
    return next(fd, bytes, count, offset);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    NEXT(write);
    REFUSE(write_error(fd));
    int64_t offset = journal < 0 ? 0 : lseek(fd, 0, SEEK_CUR);
    ssize_t result = next(fd, bytes, count);
    if (result > 0) note('w', fd, offset, bytes, result);
    return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    NEXT(pwrite);
    REFUSE(write_error(fd));
    ssize_t result = next(fd, bytes, count, offset);
    if (result > 0) note('w', fd, offset, bytes, result);
    return result;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    NEXT(pwrite64);
    int refusal = write_error(fd);
    /* A disk that fills up takes a part first. */
    if (refusal == ENOSPC && count > 512 && draw & 1 << 20) return next(fd, bytes, 512, offset);
    REFUSE(refusal);
    ssize_t result = next(fd, bytes, count, offset);
    if (result > 0) note('w', fd, offset, bytes, result);
    return result;
}

int ftruncate64(int fd, off64_t length) {
    NEXT(ftruncate64);
    REFUSE(write_error(fd));
    int result = next(fd, length);
    if (result == 0) note('t', fd, length, 0, 0);
    return result;
}

static int is_on_disk(const char *path) {
    size_t prefix = strlen(disk);
    return prefix && strncmp(path, disk, prefix) == 0;
}

int unlink(const char *path) {
    NEXT(unlink);
    int result = next(path);
    if (result == 0 && journal >= 0 && is_on_disk(path)) note_path('u', path, strlen(path), 0, 0, 0);
    return result;
}

int rename(const char *path, const char *to) {
    NEXT(rename);
    int result = next(path, to);
    if (result == 0 && journal >= 0 && is_on_disk(path)) note_path('r', path, strlen(path), 0, to, strlen(to));
    return result;
}

int fsync(int fd) {
    NEXT(fsync);
    REFUSE(flush_error(fd));
    if (control->disk == lying && struck(fd)) return 0;
    int result = next(fd);
    if (result == 0) note('f', fd, 0, 0, 0);
    return result;
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    REFUSE(flush_error(fd));
    if (control->disk == lying && struck(fd)) return 0;
    int result = next(fd);
    if (result == 0) note('f', fd, 0, 0, 0);
    return result;
}
