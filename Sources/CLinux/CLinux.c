#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

int waypost_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int waypost_open_path(int folder, const char *path, bool follows) {
    return openat(folder, path, O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW));
}

int waypost_open_unnamed(int folder) { return openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }

int waypost_rename_new(int folder, const char *old_name, const char *new_name) {
    return renameat2(folder, old_name, folder, new_name, RENAME_NOREPLACE);
}

void waypost_hide_memory(void) { (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

int waypost_chgrp(int fd, gid_t group) { return fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH); }

int waypost_timerfd(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

static int watch_clock(int fd) {
    // Never, unless the clock is set before.
    struct itimerspec when = {.it_value = {.tv_sec = INT64_MAX}};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL);
}

int waypost_clock_watch(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0 || watch_clock(fd) == 0) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

bool waypost_clock_watch_read(int fd) {
    uint64_t count;
    bool was_set = read(fd, &count, sizeof count) < 0 && errno == ECANCELED;
    (void)watch_clock(fd);
    return was_set;
}

int waypost_timerfd_arm(int fd, int64_t boottime_ns) {
    struct itimerspec when = {0};
    if (boottime_ns > 0) {
        when.it_value.tv_sec = boottime_ns / 1000000000;
        when.it_value.tv_nsec = boottime_ns % 1000000000;
    }
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int waypost_signalfd(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int waypost_signalfd_read(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

int waypost_signalfd_of(const int *signals, int count) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < count; i++) sigaddset(&set, signals[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int waypost_terminal_size(int fd, int *columns, int *rows) {
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0) return -1;
    *columns = size.ws_col;
    *rows = size.ws_row;
    return 0;
}

static struct {
    int input, output;
    bool has_settings;
    struct termios settings;
    char bytes[64];
    size_t length;
} guarded;

// Only what signal-safety(7) allows.
static void give_terminal_back(int signal) {
    if (guarded.has_settings) tcsetattr(guarded.input, TCSANOW, &guarded.settings);
    ssize_t ignored = write(guarded.output, guarded.bytes, guarded.length);
    (void)ignored;
    raise(signal);
}

void waypost_terminal_guard(int input, const struct termios *settings, int output, const char *bytes) {
    guarded.input = input;
    guarded.output = output;
    guarded.has_settings = settings != NULL;
    if (settings) guarded.settings = *settings;
    guarded.length = strnlen(bytes, sizeof guarded.bytes);
    memcpy(guarded.bytes, bytes, guarded.length);
    struct sigaction action = {.sa_handler = give_terminal_back, .sa_flags = SA_RESETHAND};
    const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) sigaction(crashes[i], &action, NULL);
}

int waypost_accept(int fd) { return accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

static struct ucred peer(int fd) {
    struct ucred peer = {.pid = 0, .uid = -1, .gid = -1};
    socklen_t length = sizeof peer;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
    return peer;
}

int64_t waypost_peer_uid(int fd) {
    uid_t user = peer(fd).uid;
    return user == (uid_t)-1 ? -1 : (int64_t)user;
}

int waypost_peer_pid(int fd) { return peer(fd).pid; }

int64_t waypost_access_list(const char *path, void *bytes, size_t size) {
    return getxattr(path, "system.posix_acl_access", bytes, size);
}

int64_t waypost_boottime_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int waypost_tty_exclusive(int fd) {
    // A pseudo-terminal (major 136 to 143) keeps the mark beyond the last close, for as long as its other end lives: a
    // daemon that was killed would lock itself out.
    struct stat status;
    if (fstat(fd, &status) == 0 && major(status.st_rdev) >= 136 && major(status.st_rdev) <= 143) return 0;
    return ioctl(fd, TIOCEXCL);
}

int64_t waypost_filesystem_magic(int fd) {
    struct statfs info;
    return fstatfs(fd, &info) == 0 ? (int64_t)info.f_type : -1;
}

int waypost_rtnetlink(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return -1;
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE,
    };
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

int waypost_rtnetlink_drain(int fd) {
    char message[8192];
    int count = 0;
    // Bounded: a host that changes its routes without end must not keep the loop.
    while (count < 1024) {
        if (recv(fd, message, sizeof message, 0) >= 0) {
            count++;
        } else if (errno == ENOBUFS) {
            return -1;
        } else if (errno != EINTR) {
            break;
        }
    }
    return count;
}

int waypost_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC | O_NONBLOCK); }

int waypost_pidfd(int pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    errno = ENOSYS;
    return -1;
#endif
}

int waypost_clock_synchronised(void) {
    struct timex state = {0};
    if (adjtimex(&state) < 0) return -1;
    // As timedatectl: the kernel lets this bound grow from one synchronisation to the next, and whoever sets the clock resets
    // it to the highest. STA_UNSYNC says less: chrony without rtcsync leaves it set.
    return state.maxerror < 16000000;
}

/// The code was written to when it was loaded: what the file has is something else.
static bool has_relocated_code(const struct dl_phdr_info *object) {
    for (int index = 0; index < object->dlpi_phnum; index++) {
        if (object->dlpi_phdr[index].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[index].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL)) return true;
        }
    }
    return false;
}

static int unmap_code(struct dl_phdr_info *object, size_t size, void *total) {
    (void)size;
    // The kernel's own, which is in no file.
    if (object->dlpi_addr != 0 && object->dlpi_addr == getauxval(AT_SYSINFO_EHDR)) return 0;
    if (has_relocated_code(object)) return 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[index];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_W)) continue;
        // Whole pages alone: the first and the last may be shared with data.
        uintptr_t start = (object->dlpi_addr + part->p_vaddr + page - 1) / page * page;
        uintptr_t end = (object->dlpi_addr + part->p_vaddr + part->p_filesz) / page * page;
        if (start < end && madvise((void *)start, end - start, MADV_DONTNEED) == 0) *(int64_t *)total += end - start;
    }
    return 0;
}

int64_t waypost_unmap_code(void) {
    int64_t total = 0;
    dl_iterate_phdr(unmap_code, &total);
    return total;
}

void waypost_trim_heap(void) {
#ifdef __GLIBC__
    // By default both limits grow with the largest block that was ever freed. Then a long reply lies in the heap of a thread, the
    // end of which malloc_trim leaves alone. What is set once stays.
    (void)mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 512 * 1024);
    (void)malloc_trim(0);
#endif
}
