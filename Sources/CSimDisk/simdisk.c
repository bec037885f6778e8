#include "CSimDisk.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512
#define SHM_REGIONS 64

const char *const simdisk_vfs = "simdisk";
const char *const simdisk_vfs_without_locks = "simdisk-none";

/// The index of a log, as all who have it open see it.
typedef struct {
    int references;
    void *regions[SHM_REGIONS];
    int count;
    int shared[SQLITE_SHM_NLOCK];
    void *exclusive[SQLITE_SHM_NLOCK];
} shm;

struct simdisk_file {
    int references;
    /// Of all files, and how often a program has changed this one.
    uint64_t number, version;
    /// The process that has locked it as a whole; 0 = none.
    uint64_t locked_by;
    uint8_t *written, *durable, *dirty;
    /// Bytes, bytes on the medium, and bytes that the three arrays have room for.
    int64_t size, durable_size, room;
    bool size_dirty;
    /// It was cut off to so many bytes, and the medium does not know that yet.
    bool is_cut;
    int64_t cut;
    /// A sector that cannot be read until it is written, from 1 on; 0 = none. And how many reads of it fail, in parts of a million.
    int64_t worn, worn_share;
    // Locks of the main file.
    int shared;
    void *reserved, *pending, *exclusive;
    /// Of those who have it open; NULL = none.
    shm *shm;
};
typedef struct simdisk_file node;

typedef struct {
    char *name;
    node *node;
} entry;

typedef struct {
    entry *entries;
    int count, room;
} directory;

/// What the directory on the medium does not know yet: `to` names the node from then on, and `from` nothing.
typedef struct {
    char *from, *to;
    node *node;
} change;

typedef struct {
    sqlite3_file base;
    node *node;
    char *name;
    uint64_t life;
    int lock;
    /// Steps in which the file grows and is cut off, bytes; 0 = any.
    int chunk;
    bool read_only, is_new, syncs_directory, delete_on_close, locks;
    shm *shm;
    uint16_t shm_shared;
} handle;

static directory current, durable;
static change *changes;
static int change_count, change_room;
static uint64_t life = 1;
/// Nothing changes any more until the process has ended.
static bool stopped;
static uint64_t random_state;
static int64_t settings[simdisk_settings_count];
static int64_t counters[simdisk_counters_count];
static char **flocks;
static int flock_count;
static char *home;

/// Something is done to a file of this name; NULL = to a temporary one.
static void note(const char *name) {
    if (home && name && strncmp(name, home, strlen(home)) != 0) counters[simdisk_strays]++;
}

static uint64_t next_random(void) {
    uint64_t z = (random_state += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

static bool strikes(int setting) {
    if (settings[setting] <= 0 || (int64_t)(next_random() % 1000000) >= settings[setting]) return false;
    counters[simdisk_faults]++;
    return true;
}

/// Counts an operation of a kind of which one is to fail.
static bool is_last(int setting) {
    if (settings[setting] <= 0 || --settings[setting] > 0) return false;
    counters[simdisk_faults]++;
    return true;
}

// Nodes.

static void release(node *node) {
    if (--node->references > 0) return;
    free(node->written);
    free(node->durable);
    free(node->dirty);
    free(node);
}

static node *make_node(void) {
    static uint64_t made_so_far;
    node *made = calloc(1, sizeof(node));
    made->references = 1;
    made->number = ++made_so_far;
    return made;
}

static void make_room(node *node, int64_t size) {
    if (size <= node->room) return;
    int64_t room = node->room ? node->room : 16 * SECTOR;
    while (room < size) room *= 2;
    node->written = realloc(node->written, room);
    node->durable = realloc(node->durable, room);
    node->dirty = realloc(node->dirty, room / SECTOR);
    memset(node->written + node->room, 0, room - node->room);
    memset(node->durable + node->room, 0, room - node->room);
    memset(node->dirty + node->room / SECTOR, 0, (room - node->room) / SECTOR);
    node->room = room;
}

static int64_t sectors(const node *node) {
    int64_t size = node->size > node->durable_size ? node->size : node->durable_size;
    return (size + SECTOR - 1) / SECTOR;
}

static void resize(node *node, int64_t size) {
    make_room(node, size);
    node->version++;
    if (size < node->size) {
        // What is cut off reads as zeros should the file grow again.
        memset(node->written + size, 0, node->size - size);
        for (int64_t s = size / SECTOR; s * SECTOR < node->size; s++) node->dirty[s] = 1;
        if (!node->is_cut || size < node->cut) node->cut = size;
        node->is_cut = true;
    }
    if (size != node->size) node->size_dirty = true;
    node->size = size;
}

static void keep_sector(node *node, int64_t sector) {
    memcpy(node->durable + sector * SECTOR, node->written + sector * SECTOR, SECTOR);
}

/// The medium learns the size. That a file was cut off is on it as a whole or not at all: no file system overwrites what it cuts off, and
/// what is written there afterwards lies in other blocks.
static void keep_size(node *node) {
    if (node->is_cut && node->cut < node->durable_size) {
        memset(node->durable + node->cut, 0, node->durable_size - node->cut);
    }
    node->is_cut = false;
    node->durable_size = node->size;
}

/// Until the medium knows that the file was cut off, it has what was there before.
static bool is_behind_cut(const node *node, int64_t sector) { return node->is_cut && (sector + 1) * SECTOR > node->cut; }

static void flush(node *node) {
    int64_t count = sectors(node);
    keep_size(node);
    for (int64_t s = 0; s < count; s++) {
        if (!node->dirty[s]) continue;
        keep_sector(node, s);
        node->dirty[s] = 0;
    }
    node->size_dirty = false;
}

/// Some of it got there; the kernel takes all of it for written.
static void fail_flush(node *node) {
    enum { gets_there = 2 };
    int64_t count = sectors(node);
    for (int64_t s = 0; s < count; s++) {
        if (node->dirty[s]) node->dirty[s] = next_random() & 1 ? gets_there : 0;
    }
    if (node->size_dirty && (next_random() & 1)) keep_size(node);
    for (int64_t s = 0; s < count; s++) {
        if (node->dirty[s] == gets_there && !is_behind_cut(node, s)) keep_sector(node, s);
        node->dirty[s] = 0;
    }
    // The journal has it, and is written with the next change.
    node->size_dirty = node->is_cut;
}

/// - Returns: errno.
static int sync_node(node *node) {
    counters[simdisk_syncs]++;
    if (is_last(simdisk_syncs_left) || strikes(simdisk_fail_sync)) {
        fail_flush(node);
        return EIO;
    }
    if (strikes(simdisk_lying_sync)) {
        counters[simdisk_lies]++;
        return 0;
    }
    flush(node);
    return 0;
}

// Directories.

static int find(const directory *directory, const char *name) {
    for (int i = 0; i < directory->count; i++) {
        if (strcmp(directory->entries[i].name, name) == 0) return i;
    }
    return -1;
}

static void unlink_name(directory *directory, const char *name) {
    int index = find(directory, name);
    if (index < 0) return;
    free(directory->entries[index].name);
    release(directory->entries[index].node);
    memmove(directory->entries + index, directory->entries + index + 1,
            (directory->count - index - 1) * sizeof(entry));
    directory->count--;
}

static void link_name(directory *directory, const char *name, node *node) {
    node->references++;
    unlink_name(directory, name);
    if (directory->count == directory->room) {
        directory->room = directory->room ? directory->room * 2 : 8;
        directory->entries = realloc(directory->entries, directory->room * sizeof(entry));
    }
    directory->entries[directory->count++] = (entry){strdup(name), node};
}

static void apply(directory *directory, const char *from, const char *to, node *node) {
    if (to) link_name(directory, to, node);
    if (from) unlink_name(directory, from);
}

static void change_names(const char *from, const char *to, node *node) {
    note(from);
    note(to);
    node->references++;
    if (change_count == change_room) {
        change_room = change_room ? change_room * 2 : 8;
        changes = realloc(changes, change_room * sizeof(change));
    }
    changes[change_count++] = (change){from ? strdup(from) : NULL, to ? strdup(to) : NULL, node};
    apply(&current, from, to, node);
}

static void end_changes(bool all) {
    for (int i = 0; i < change_count; i++) {
        change *c = &changes[i];
        if (all || (next_random() & 1)) apply(&durable, c->from, c->to, c->node);
        free(c->from);
        free(c->to);
        release(c->node);
    }
    change_count = 0;
}

static node *look_up(const char *name) {
    int index = find(&current, name);
    return index < 0 ? NULL : current.entries[index].node;
}

static void clear(directory *directory) {
    while (directory->count) unlink_name(directory, directory->entries[0].name);
}

static int64_t used(void) {
    int64_t bytes = 0;
    for (int i = 0; i < current.count; i++) bytes += current.entries[i].node->size;
    return bytes;
}

// SQLite's way to a file.

static bool is_dead(const handle *file) { return stopped || file->life != life; }

/// Something is about to be changed on the disk. false: the process has ended a moment before.
static bool may_change(void) {
    if (stopped) return false;
    if (settings[simdisk_changes_left] > 0 && --settings[simdisk_changes_left] == 0) stopped = true;
    return !stopped;
}

static int unlock_all(handle *file) {
    node *node = file->node;
    if (file->lock >= SQLITE_LOCK_SHARED) node->shared--;
    if (node->reserved == file) node->reserved = NULL;
    if (node->pending == file) node->pending = NULL;
    if (node->exclusive == file) node->exclusive = NULL;
    file->lock = SQLITE_LOCK_NONE;
    return SQLITE_OK;
}

static int shm_unmap(sqlite3_file *base, int deletes);

static int file_close(sqlite3_file *base) {
    handle *file = (handle *)base;
    shm_unmap(base, 0);
    if (!is_dead(file)) {
        unlock_all(file);
        if (file->delete_on_close && file->name) simdisk_remove(file->name);
    }
    release(file->node);
    free(file->name);
    return SQLITE_OK;
}

/// The last sector of which a read has failed: the number of its file, and its own, from 1 on. 0 = none, or it was read since.
static uint64_t failing_file;
static int64_t failing_sector, failed_runs;

static void note_failed_read(const node *node, int64_t sector) {
    counters[simdisk_failed_reads]++;
    if (failing_file != node->number || failing_sector != sector + 1) {
        failing_file = node->number;
        failing_sector = sector + 1;
        counters[simdisk_failed_run] = ++failed_runs;
    }
}

static void note_good_read(const node *node, int64_t offset, int64_t count) {
    if (failing_sector == 0 || failing_file != node->number) return;
    if (offset >= failing_sector * SECTOR || offset + count <= (failing_sector - 1) * SECTOR) return;
    failing_sector = counters[simdisk_failed_run] = 0;
}

static int file_read(sqlite3_file *base, void *buffer, int count, sqlite3_int64 offset) {
    handle *file = (handle *)base;
    if (is_dead(file)) return SQLITE_IOERR_READ;
    counters[simdisk_reads]++;
    int64_t worn = file->node->worn;
    bool is_worn = worn > 0 && offset < worn * SECTOR && offset + count > (worn - 1) * SECTOR
        && (int64_t)(file->node->worn_share >= 1000000 ? 0 : next_random() % 1000000) < file->node->worn_share;
    if (is_last(simdisk_reads_left) || strikes(simdisk_fail_read) || is_worn) {
        note_failed_read(file->node, is_worn ? worn - 1 : offset / SECTOR);
        // As the unix VFS says EIO. A running statement makes SQLITE_CORRUPT of it.
        return SQLITE_IOERR_CORRUPTFS;
    }
    note_good_read(file->node, offset, count);
    int64_t there = file->node->size - offset;
    if (there >= count) {
        memcpy(buffer, file->node->written + offset, count);
        return SQLITE_OK;
    }
    if (there < 0) there = 0;
    if (there > 0) memcpy(buffer, file->node->written + offset, there);
    memset((uint8_t *)buffer + there, 0, count - there);
    return SQLITE_IOERR_SHORT_READ;
}

static void write_bytes(node *node, const void *bytes, int64_t count, int64_t offset) {
    if (count <= 0) return;
    if (offset + count > node->size) resize(node, offset + count);
    node->version++;
    memcpy(node->written + offset, bytes, count);
    for (int64_t s = offset / SECTOR; s * SECTOR < offset + count; s++) {
        node->dirty[s] = 1;
        if (s + 1 == node->worn) node->worn = 0;
    }
}

static int file_write(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
    handle *file = (handle *)base;
    if (is_dead(file) || !may_change()) return SQLITE_IOERR_WRITE;
    note(file->name);
    counters[simdisk_writes]++;
    if (settings[simdisk_read_only] || is_last(simdisk_writes_left) || strikes(simdisk_fail_write)) return SQLITE_IOERR_WRITE;
    int64_t growth = offset + count - file->node->size;
    if (growth > 0 && settings[simdisk_capacity] > 0 && used() + growth > settings[simdisk_capacity]) {
        counters[simdisk_faults]++;
        write_bytes(file->node, bytes, count - growth > 0 ? count - growth : 0, offset);
        return SQLITE_FULL;
    }
    if (strikes(simdisk_short_write)) {
        write_bytes(file->node, bytes, count / 2, offset);
        return SQLITE_IOERR_WRITE;
    }
    write_bytes(file->node, bytes, count, offset);
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size) {
    handle *file = (handle *)base;
    if (is_dead(file) || settings[simdisk_read_only] || !may_change()) return SQLITE_IOERR_TRUNCATE;
    note(file->name);
    if (is_last(simdisk_writes_left)) return SQLITE_IOERR_TRUNCATE;
    // As the unix VFS, but for room that it takes without blocks.
    if (file->chunk > 0) size = (size + file->chunk - 1) / file->chunk * file->chunk;
    if (size > file->node->size && file->chunk > 0) size = file->node->size;
    resize(file->node, size);
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags) {
    (void)flags;
    handle *file = (handle *)base;
    if (is_dead(file) || !may_change() || sync_node(file->node) != 0) return SQLITE_IOERR_FSYNC;
    if (file->syncs_directory) {
        // The unix VFS does not report this one. Of errors that come by chance it is reported, so that no name is lost unnoticed.
        bool fails = is_last(simdisk_syncs_left);
        if (!fails && (file->is_new || change_count > 0) && simdisk_sync_directory() != 0) return SQLITE_IOERR_DIR_FSYNC;
        file->syncs_directory = false;
    }
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size) {
    handle *file = (handle *)base;
    if (is_dead(file)) return SQLITE_IOERR_FSTAT;
    *size = file->node->size;
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int lock) {
    handle *file = (handle *)base;
    node *node = file->node;
    if (is_dead(file)) return SQLITE_IOERR_LOCK;
    if (!file->locks || file->lock >= lock) return SQLITE_OK;
    if (lock == SQLITE_LOCK_SHARED) {
        if ((node->pending && node->pending != file) || (node->exclusive && node->exclusive != file)) return SQLITE_BUSY;
        node->shared++;
        file->lock = SQLITE_LOCK_SHARED;
        return SQLITE_OK;
    }
    if (node->reserved && node->reserved != file) return SQLITE_BUSY;
    if (lock == SQLITE_LOCK_RESERVED) {
        node->reserved = file;
        file->lock = SQLITE_LOCK_RESERVED;
        return SQLITE_OK;
    }
    if (node->pending && node->pending != file) return SQLITE_BUSY;
    node->pending = file;
    if (node->shared > 1) {
        if (file->lock < SQLITE_LOCK_PENDING) file->lock = SQLITE_LOCK_PENDING;
        return SQLITE_BUSY;
    }
    node->reserved = node->exclusive = file;
    file->lock = SQLITE_LOCK_EXCLUSIVE;
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *base, int lock) {
    handle *file = (handle *)base;
    node *node = file->node;
    if (is_dead(file) || !file->locks) return SQLITE_OK;
    if (file->lock <= lock) return SQLITE_OK;
    if (lock == SQLITE_LOCK_NONE) return unlock_all(file);
    if (node->reserved == file) node->reserved = NULL;
    if (node->pending == file) node->pending = NULL;
    if (node->exclusive == file) node->exclusive = NULL;
    file->lock = SQLITE_LOCK_SHARED;
    return SQLITE_OK;
}

static int file_check_reserved(sqlite3_file *base, int *is_reserved) {
    handle *file = (handle *)base;
    *is_reserved = !is_dead(file) && file->node->reserved != NULL;
    return SQLITE_OK;
}

// Room for pages that are in the log alone.
static int give_room(handle *file, int64_t size) {
    if (file->chunk > 0) size = (size + file->chunk - 1) / file->chunk * file->chunk;
    int64_t growth = size - file->node->size;
    if (growth <= 0) return SQLITE_OK;
    if (is_dead(file) || !may_change() || settings[simdisk_read_only]) return SQLITE_IOERR_WRITE;
    if (settings[simdisk_capacity] > 0 && used() + growth > settings[simdisk_capacity]) {
        counters[simdisk_faults]++;
        return SQLITE_FULL;
    }
    resize(file->node, file->node->size + growth);
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int operation, void *argument) {
    handle *file = (handle *)base;
    switch (operation) {
    case SQLITE_FCNTL_LOCKSTATE: *(int *)argument = file->lock; return SQLITE_OK;
    // As the unix VFS: the log stays when the last connection goes.
    case SQLITE_FCNTL_PERSIST_WAL:
        if (*(int *)argument < 0) *(int *)argument = 1;
        return SQLITE_OK;
    case SQLITE_FCNTL_POWERSAFE_OVERWRITE:
        *(int *)argument = settings[simdisk_powersafe_overwrite] != 0;
        return SQLITE_OK;
    case SQLITE_FCNTL_HAS_MOVED: *(int *)argument = look_up(file->name) != file->node; return SQLITE_OK;
    case SQLITE_FCNTL_CHUNK_SIZE: file->chunk = *(int *)argument; return SQLITE_OK;
    case SQLITE_FCNTL_SIZE_HINT: return give_room(file, *(sqlite3_int64 *)argument);
    default: return SQLITE_NOTFOUND;
    }
}

static int file_sector_size(sqlite3_file *base) {
    (void)base;
    return 4096;
}

static int file_characteristics(sqlite3_file *base) {
    (void)base;
    return settings[simdisk_powersafe_overwrite] ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}

static int shm_map(sqlite3_file *base, int region, int size, int extends, void volatile **address) {
    handle *file = (handle *)base;
    node *node = file->node;
    *address = NULL;
    if (is_dead(file) || region >= SHM_REGIONS) return SQLITE_IOERR_SHMMAP;
    if (!file->shm) {
        // It is a file, too.
        if (!node->shm && settings[simdisk_read_only]) return SQLITE_CANTOPEN;
        if (!node->shm) node->shm = calloc(1, sizeof(shm));
        file->shm = node->shm;
        file->shm->references++;
    }
    while (file->shm->count <= region) {
        if (!extends) return SQLITE_OK;
        file->shm->regions[file->shm->count++] = calloc(1, size);
    }
    *address = file->shm->regions[region];
    return SQLITE_OK;
}

static int shm_lock(sqlite3_file *base, int offset, int count, int flags) {
    handle *file = (handle *)base;
    shm *shm = file->shm;
    if (is_dead(file) || !shm) return SQLITE_IOERR_SHMLOCK;
    for (int i = offset; i < offset + count; i++) {
        bool blocked = flags & SQLITE_SHM_LOCK
            && ((shm->exclusive[i] && shm->exclusive[i] != file)
                || (flags & SQLITE_SHM_EXCLUSIVE && shm->shared[i] - ((file->shm_shared >> i) & 1) > 0));
        if (blocked) return SQLITE_BUSY;
    }
    for (int i = offset; i < offset + count; i++) {
        uint16_t bit = 1 << i;
        if (flags & SQLITE_SHM_UNLOCK) {
            if (file->shm_shared & bit) shm->shared[i]--;
            if (shm->exclusive[i] == file) shm->exclusive[i] = NULL;
            file->shm_shared &= ~bit;
        } else if (flags & SQLITE_SHM_EXCLUSIVE) {
            shm->exclusive[i] = file;
        } else if (!(file->shm_shared & bit)) {
            shm->shared[i]++;
            file->shm_shared |= bit;
        }
    }
    return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *base) { (void)base; }

// A process that was killed still has its pointers until its connections are closed.
static int shm_unmap(sqlite3_file *base, int deletes) {
    handle *file = (handle *)base;
    shm *shm = file->shm;
    (void)deletes;
    if (!shm) return SQLITE_OK;
    shm_lock(base, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK);
    file->shm = NULL;
    if (--shm->references > 0) return SQLITE_OK;
    if (file->node->shm == shm) file->node->shm = NULL;
    for (int i = 0; i < shm->count; i++) free(shm->regions[i]);
    free(shm);
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *flags_out) {
    handle *file = (handle *)base;
    memset(file, 0, sizeof *file);
    node *found = name ? look_up(name) : NULL;
    bool created = false;
    if (!found) {
        if (name && (!(flags & SQLITE_OPEN_CREATE) || settings[simdisk_read_only] || !may_change())) {
            return SQLITE_CANTOPEN;
        }
        found = make_node();
        if (name) {
            change_names(NULL, name, found);
            created = true;
        }
    } else {
        found->references++;
    }
    file->node = found;
    file->name = name ? strdup(name) : NULL;
    file->life = life;
    file->locks = vfs->zName == simdisk_vfs;
    file->delete_on_close = flags & SQLITE_OPEN_DELETEONCLOSE;
    file->is_new = created;
    // As the unix VFS, also of a file that was there.
    file->syncs_directory =
        flags & SQLITE_OPEN_CREATE && flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL);
    if (settings[simdisk_read_only] && flags & SQLITE_OPEN_READWRITE) {
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    }
    file->read_only = flags & SQLITE_OPEN_READONLY;
    if (flags_out) *flags_out = flags;
    base->pMethods = &methods;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int syncs_directory) {
    (void)vfs;
    int reason = simdisk_remove(name);
    if (reason == ENOENT) return SQLITE_IOERR_DELETE_NOENT;
    if (reason != 0) return SQLITE_IOERR_DELETE;
    if (syncs_directory && simdisk_sync_directory() != 0) return SQLITE_IOERR_DIR_FSYNC;
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs;
    node *found = look_up(name);
    // As the unix VFS: an empty file does not count as a journal.
    *result = found && (flags != SQLITE_ACCESS_EXISTS || found->size > 0)
        && !(flags == SQLITE_ACCESS_READWRITE && settings[simdisk_read_only]);
    return SQLITE_OK;
}

static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int room, char *out) {
    (void)vfs;
    sqlite3_snprintf(room, out, "%s", name);
    return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *vfs, int count, char *out) {
    (void)vfs;
    for (int i = 0; i < count; i++) out[i] = (char)next_random();
    return count;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

static int vfs_time(sqlite3_vfs *vfs, sqlite3_int64 *milliseconds) {
    (void)vfs;
    *milliseconds = 210866760000000 + 1700000000000;
    return SQLITE_OK;
}

static int vfs_time_days(sqlite3_vfs *vfs, double *days) {
    sqlite3_int64 milliseconds;
    vfs_time(vfs, &milliseconds);
    *days = milliseconds / 86400000.0;
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int room, char *out) {
    (void)vfs, (void)room, (void)out;
    return 0;
}

static sqlite3_vfs simdisk = {
    .iVersion = 2,
    .szOsFile = sizeof(handle),
    .mxPathname = 512,
    .zName = NULL,
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_pathname,
    .xRandomness = vfs_randomness,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time_days,
    .xGetLastError = vfs_last_error,
    .xCurrentTimeInt64 = vfs_time,
};

// What the world does to it.

void simdisk_reset(uint64_t seed) {
    static bool registered;
    if (!registered) {
        static sqlite3_vfs without_locks;
        without_locks = simdisk;
        simdisk.zName = simdisk_vfs;
        without_locks.zName = simdisk_vfs_without_locks;
        sqlite3_vfs_register(&without_locks, 0);
        sqlite3_vfs_register(&simdisk, 0);
    }
    registered = true;
    simdisk_kill();
    end_changes(false);
    clear(&current);
    clear(&durable);
    memset(settings, 0, sizeof settings);
    memset(counters, 0, sizeof counters);
    failing_sector = failed_runs = 0;
    settings[simdisk_powersafe_overwrite] = 1;
    simdisk_home(NULL);
    random_state = seed;
    sqlite3_randomness(0, NULL);
}

void simdisk_be_default(void) {
    // There is one thread, and how much memory is in use is of no interest: both would cost a lock at each allocation.
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    simdisk_reset(0);
    sqlite3_vfs_register(&simdisk, 1);
}

void simdisk_set(int setting, int64_t value) { settings[setting] = value; }
int64_t simdisk_get(int setting) { return settings[setting]; }
int64_t simdisk_counter(int counter) { return counters[counter]; }

static void drop_locks(node *node) {
    node->shared = 0;
    node->reserved = node->pending = node->exclusive = NULL;
    node->shm = NULL;
}

void simdisk_kill(void) {
    life++;
    stopped = false;
    settings[simdisk_changes_left] = 0;
    // Also of files that have no name any more: a power cut may bring them back.
    for (int i = 0; i < current.count; i++) drop_locks(current.entries[i].node);
    for (int i = 0; i < durable.count; i++) drop_locks(durable.entries[i].node);
    for (int i = 0; i < change_count; i++) drop_locks(changes[i].node);
    for (int i = 0; i < flock_count; i++) free(flocks[i]);
    flock_count = 0;
}

void simdisk_power_cut(void) {
    simdisk_kill();
    end_changes(false);
    clear(&current);
    for (int i = 0; i < durable.count; i++) {
        node *node = durable.entries[i].node;
        if (node->size_dirty && (next_random() & 1)) keep_size(node);
        for (int64_t s = 0; s < sectors(node); s++) {
            if (node->dirty[s] && (next_random() & 1) && !is_behind_cut(node, s)) keep_sector(node, s);
            node->dirty[s] = 0;
        }
        // Beyond its end a file holds nothing.
        memset(node->durable + node->durable_size, 0, node->room - node->durable_size);
        node->size = node->durable_size;
        node->size_dirty = node->is_cut = false;
        if (node->room) memcpy(node->written, node->durable, node->room);
        link_name(&current, durable.entries[i].name, node);
    }
}

void simdisk_damage(const char *path, int count) {
    node *node = look_up(path);
    if (!node || node->size == 0) return;
    for (int i = 0; i < count; i++) {
        int64_t sector = next_random() % ((node->size + SECTOR - 1) / SECTOR);
        for (int b = 0; b < SECTOR; b++) node->written[sector * SECTOR + b] = (uint8_t)next_random();
        keep_sector(node, sector);
    }
}

void simdisk_wear(const char *path, int64_t sector, int64_t share) {
    node *node = look_up(path);
    if (!node) return;
    node->worn = sector + 1;
    node->worn_share = share;
}

void simdisk_plant(const char *path, const void *bytes, int64_t count) {
    node *node = make_node();
    write_bytes(node, bytes, count, 0);
    flush(node);
    link_name(&current, path, node);
    link_name(&durable, path, node);
    release(node);
}

const uint8_t *simdisk_contents(const char *path) {
    node *found = look_up(path);
    return found ? found->written : NULL;
}

void simdisk_home(const char *prefix) {
    free(home);
    home = prefix ? strdup(prefix) : NULL;
}

bool simdisk_exists(const char *path) { return look_up(path) != NULL; }

int64_t simdisk_size(const char *path) {
    node *found = look_up(path);
    return found ? found->size : 0;
}

const char *simdisk_name(int number) { return number < current.count ? current.entries[number].name : NULL; }

int simdisk_create(const char *path) {
    if (look_up(path)) return 0;
    if (!may_change()) return EIO;
    if (settings[simdisk_read_only]) return EROFS;
    node *made = make_node();
    change_names(NULL, path, made);
    release(made);
    return 0;
}

int simdisk_rename(const char *path, const char *other) {
    node *found = look_up(path);
    if (!found) return ENOENT;
    if (!may_change()) return EIO;
    if (settings[simdisk_read_only]) return EROFS;
    change_names(path, other, found);
    return 0;
}

int simdisk_remove(const char *path) {
    node *found = look_up(path);
    if (!found) return ENOENT;
    if (!may_change()) return EIO;
    if (settings[simdisk_read_only]) return EROFS;
    change_names(path, NULL, found);
    return 0;
}

int simdisk_sync_directory(void) {
    if (!may_change()) return EIO;
    counters[simdisk_syncs]++;
    if (strikes(simdisk_fail_sync)) return EIO;
    if (strikes(simdisk_lying_sync)) {
        counters[simdisk_lies]++;
        return 0;
    }
    end_changes(true);
    return 0;
}

int simdisk_forget(const char *path, bool suspect) {
    node *node = look_up(path);
    if (!node) return 0;
    if (stopped) return EIO;
    // A size that was never written is written again with the times of the file.
    if (suspect && node->size != node->durable_size) node->size_dirty = true;
    int reason = sync_node(node);
    for (int64_t s = 0; s < sectors(node); s++) {
        if (!node->dirty[s]) memcpy(node->written + s * SECTOR, node->durable + s * SECTOR, SECTOR);
    }
    // Of what was cut off nothing is shown again, whether or not the medium knows.
    if (node->is_cut) {
        for (int64_t s = node->cut / SECTOR; s < sectors(node); s++) {
            int64_t from = s * SECTOR > node->cut ? s * SECTOR : node->cut;
            if (!node->dirty[s]) memset(node->written + from, 0, (s + 1) * SECTOR - from);
        }
    }
    return reason;
}

int64_t simdisk_available(void) {
    if (settings[simdisk_capacity] <= 0) return (int64_t)1 << 32;
    int64_t rest = settings[simdisk_capacity] - used();
    return rest > 0 ? rest : 0;
}

bool simdisk_mark(const char *path, simdisk_identity *identity) {
    node *found = look_up(path);
    if (found) *identity = simdisk_identify(found);
    return found != NULL;
}

simdisk_file *simdisk_hold(const char *path) {
    node *found = look_up(path);
    if (found) found->references++;
    return found;
}

simdisk_identity simdisk_identify(const simdisk_file *file) {
    return (simdisk_identity){file->number, file->version, file->size};
}

bool simdisk_lock_file(simdisk_file *file) {
    if (file->locked_by == life) return false;
    file->locked_by = life;
    return true;
}

void simdisk_release(simdisk_file *file, uint64_t of_life, bool is_locked) {
    if (is_locked && file->locked_by == of_life) file->locked_by = 0;
    release(file);
}

int simdisk_copy(const simdisk_file *file, const char *path) {
    if (stopped) return EIO;
    if (file->worn > 0 || strikes(simdisk_fail_read)) return EIO;
    int reason = simdisk_create(path);
    if (reason != 0) return reason;
    node *copy = look_up(path);
    int64_t growth = file->size - copy->size;
    if (!may_change() || strikes(simdisk_fail_write)) return EIO;
    if (growth > 0 && settings[simdisk_capacity] > 0 && used() + growth > settings[simdisk_capacity]) {
        counters[simdisk_faults]++;
        return ENOSPC;
    }
    resize(copy, 0);
    write_bytes(copy, file->written, file->size, 0);
    return may_change() ? sync_node(copy) : EIO;
}

void simdisk_unlink(const char *path) {
    node *found = look_up(path);
    if (found) change_names(path, NULL, found);
}

void simdisk_overwrite(const char *path, const void *bytes, int64_t count) {
    node *found = look_up(path);
    if (!found) return;
    resize(found, 0);
    write_bytes(found, bytes, count, 0);
}

uint64_t simdisk_life(void) { return life; }

bool simdisk_stopped(void) { return stopped; }

int simdisk_flock(const char *path) {
    if (simdisk_is_flocked(path)) return EWOULDBLOCK;
    flocks = realloc(flocks, (flock_count + 1) * sizeof *flocks);
    flocks[flock_count++] = strdup(path);
    return 0;
}

bool simdisk_is_flocked(const char *path) {
    for (int i = 0; i < flock_count; i++) {
        if (strcmp(flocks[i], path) == 0) return true;
    }
    return false;
}

void simdisk_funlock(const char *path) {
    for (int i = 0; i < flock_count; i++) {
        if (strcmp(flocks[i], path) != 0) continue;
        free(flocks[i]);
        flocks[i] = flocks[--flock_count];
        return;
    }
}
