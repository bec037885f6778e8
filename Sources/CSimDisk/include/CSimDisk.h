#pragma once

#include <stdbool.h>
#include <stdint.h>

/// A file system in memory, and SQLite's way to it, that loses at a power cut what was not flushed.
///
/// Each file has what programs see (written) and what is on the medium (durable). A flush copies the one to the other;
/// before it each 512-byte sector, the size, and each creation, renaming and deletion reach the medium by themselves or
/// not, as the seed says; where a file was cut off, what is written there only after the size. There is one for the whole process, and it belongs to one thread.

/// What goes wrong. Shares are in parts of a million of the operations of that kind.
enum {
    simdisk_fail_read = 0,
    simdisk_fail_write = 1,
    /// Of the dirty sectors some reach the medium, and none counts as dirty any more.
    simdisk_fail_sync = 2,
    /// Writes half of it and fails.
    simdisk_short_write = 3,
    /// 1 = nothing can be changed.
    simdisk_read_only = 4,
    /// Bytes of all files together; 0 = as many as you like.
    simdisk_capacity = 5,
    /// A flush does nothing and reports success.
    simdisk_lying_sync = 6,
    /// 1 = a write touches no bytes beside its own (SQLITE_IOCAP_POWERSAFE_OVERWRITE). 1 at the start.
    simdisk_powersafe_overwrite = 7,
    /// After this many changes more, counted down, the process ends: nothing changes after that until `simdisk_kill` or
    /// `simdisk_power_cut`. 0 = it goes on.
    simdisk_changes_left = 8,
    /// The last of so many reads, writes or flushes from now on fails, once. 0 = none does.
    simdisk_reads_left = 9,
    simdisk_writes_left = 10,
    simdisk_syncs_left = 11,
    simdisk_settings_count = 12,
};

/// Counted since `simdisk_reset`.
enum {
    simdisk_reads = 0,
    simdisk_writes = 1,
    simdisk_syncs = 2,
    simdisk_faults = 3,
    simdisk_lies = 4,
    /// Files made, written, cut, renamed or removed whose names do not begin as `simdisk_home` says.
    simdisk_strays = 5,
    /// Reads that failed.
    simdisk_failed_reads = 6,
    /// Names the failures of one sector that follow each other, while no read of it succeeds; 0 = the one that failed last was read since.
    simdisk_failed_run = 7,
    simdisk_counters_count = 8,
};

/// The name of the VFS, which is registered by the first `simdisk_reset`.
extern const char *const simdisk_vfs;
/// The same files without locks between connections.
extern const char *const simdisk_vfs_without_locks;

/// An empty disk without faults. SQLite's random numbers begin again as the seed says. No connection may be open.
void simdisk_reset(uint64_t seed);

/// Makes it SQLite's default, so that SQLite's own random numbers come of the seed as well. Not for a process that opens
/// files of the system too.
void simdisk_be_default(void);
void simdisk_set(int setting, int64_t value);
int64_t simdisk_get(int setting);
int64_t simdisk_counter(int counter);

/// `simdisk_changes_left` has come to its end.
bool simdisk_stopped(void);
/// Counts the processes; another after each end of one.
uint64_t simdisk_life(void);
/// The process ends: what it wrote stays, its locks go, and what it still has open does nothing any more.
void simdisk_kill(void);
/// The power goes, and the process with it: the medium keeps what is durable and any part of the rest.
void simdisk_power_cut(void);
/// Damages this many sectors of a file, on the medium as well.
void simdisk_damage(const char *path, int sectors);
/// A sector of a file, from 0 on, cannot be read any more until it is written, or only now and then.
/// - share: of the reads that fail, in parts of a million.
void simdisk_wear(const char *path, int64_t sector, int64_t share);

/// Puts a file there, on the medium as well, or other bytes in its place.
void simdisk_plant(const char *path, const void *bytes, int64_t count);
/// What programs see of a file, `simdisk_size` bytes, until something is changed; NULL of one that is empty or not there.
const uint8_t *simdisk_contents(const char *path);
/// From now on changes of files whose names do not begin with this count as strays; NULL, as after a reset = none does.
void simdisk_home(const char *prefix);

bool simdisk_exists(const char *path);
int64_t simdisk_size(const char *path);
/// The name of the file with this number, from 0, which is valid until the next call that changes files; NULL = no more.
const char *simdisk_name(int number);
/// These return errno, 0 = done.
int simdisk_create(const char *path);
int simdisk_rename(const char *path, const char *other);
int simdisk_remove(const char *path);
int simdisk_sync_directory(void);
/// Flushes a file; what is not dirty then is read from the medium from now on. The result is that of the flush.
/// - suspect: a write or a flush has failed: the size is flushed as well.
int simdisk_forget(const char *path, bool suspect);
/// Bytes that may still be written.
int64_t simdisk_available(void);
/// An advisory lock that goes with the process: 0, EWOULDBLOCK, or EROFS, since it stands in a file. It is gone when that file is.
int simdisk_flock(const char *path);
bool simdisk_is_flocked(const char *path);
void simdisk_funlock(const char *path);

// Files that are known by more than their name.

/// A number of its own, how often it was changed, and bytes.
typedef struct {
    uint64_t number, version;
    int64_t size;
} simdisk_identity;
typedef struct simdisk_file simdisk_file;

/// - Returns: whether there is a file at the path.
bool simdisk_mark(const char *path, simdisk_identity *identity);
/// Keeps a file until it is released, whatever becomes of its name; NULL = there is none.
simdisk_file *simdisk_hold(const char *path);
simdisk_identity simdisk_identify(const simdisk_file *file);
/// Locks the file as a whole for this process. false = it has it locked already.
bool simdisk_lock_file(simdisk_file *file);
void simdisk_release(simdisk_file *file, uint64_t of_life, bool is_locked);
/// Makes a flushed copy. - Returns: errno, 0 = done.
int simdisk_copy(const simdisk_file *file, const char *path);

// What other programs do, whatever the disk refuses to the daemon. `simdisk_plant` is one of these, too.

void simdisk_unlink(const char *path);
/// The same file has this content from now on.
void simdisk_overwrite(const char *path, const void *bytes, int64_t count);
