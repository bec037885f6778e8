#ifndef WAYPOST_CLINUX_H
#define WAYPOST_CLINUX_H

// System calls that the Glibc module of Swift does not import, under their own names with a prefix.
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <termios.h>

/// eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); -1 and errno on failure.
int waypost_eventfd(void);
/// timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK); -1 and errno on failure.
int waypost_timerfd(void);
/// Arms the timer for an absolute boot-clock instant in nanoseconds; 0 or less disarms it.
int waypost_timerfd_arm(int fd, int64_t boottime_ns);
/// A descriptor (TFD_CLOEXEC, TFD_NONBLOCK) that becomes readable when the wall clock is set; -1 and errno on failure.
int waypost_clock_watch(void);
/// Makes it wait for the next time; whether the clock was set.
bool waypost_clock_watch_read(int fd);
/// signalfd for SIGTERM, SIGINT and SIGHUP, which are blocked for the calling thread and its children.
int waypost_signalfd(void);
/// Reads one pending signal number from a signalfd, 0 when there is none.
int waypost_signalfd_read(int fd);
/// accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK).
int waypost_accept(int fd);
/// Effective user id of the peer of a Unix stream socket, or -1.
int64_t waypost_peer_uid(int fd);
/// Process that connected, or that listens where this one did; 0 where it is hidden from this one.
int waypost_peer_pid(int fd);
/// openat(folder, path, O_PATH | O_CLOEXEC), with O_NOFOLLOW unless links are followed: a link is then opened as a link.
/// Opening a path acts on nothing: no device notices it, and no pipe waits.
int waypost_open_path(int folder, const char *path, bool follows);
/// openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600): a file without a name; -1 and errno on failure, EOPNOTSUPP where the
/// file system knows none, EISDIR where the kernel does not.
int waypost_open_unnamed(int folder);
/// renameat2(folder, old, folder, new, RENAME_NOREPLACE): 0, or -1 and errno; EINVAL where the file system does not know it.
int waypost_rename_new(int folder, const char *old_name, const char *new_name);
/// prctl(PR_SET_DUMPABLE, 0): no core dump of this process, and no other process of its user may read its memory.
void waypost_hide_memory(void);
/// Changes the group of what such a descriptor means: 0, or -1 and errno.
int waypost_chgrp(int fd, gid_t group);
/// getxattr(path, "system.posix_acl_access", …): the bytes of the access control list, or -1 and errno, ENODATA where there is none.
int64_t waypost_access_list(const char *path, void *bytes, size_t size);
/// CLOCK_BOOTTIME in nanoseconds.
int64_t waypost_boottime_ns(void);
/// ioctl(fd, TIOCEXCL): further opens of this terminal fail with EBUSY (root excepted). Nothing for a pseudo-terminal.
int waypost_tty_exclusive(int fd);
/// f_type of fstatfs(2), the magic number of the file system that holds the file; -1 and errno on failure.
int64_t waypost_filesystem_magic(int fd);
/// A netlink socket (SOCK_NONBLOCK, SOCK_CLOEXEC) that hears of links, addresses and routes; -1 and errno on failure.
int waypost_rtnetlink(void);
/// Reads and throws away what waits; the number of messages, or -1 when some were lost.
int waypost_rtnetlink_drain(int fd);
/// pipe2(ends, O_CLOEXEC | O_NONBLOCK): 0, or -1 and errno.
int waypost_pipe(int ends[2]);
/// pidfd_open(pid, 0), readable when the process has ended; -1 and errno on failure, ENOSYS before Linux 5.3.
int waypost_pidfd(int pid);
/// 1 when a time service keeps the wall clock within 16 s by what it has told the kernel (adjtimex(2)), 0 when not, -1 and errno
/// when the kernel may not be asked. Without a new synchronisation it is 0 after nine hours.
int waypost_clock_synchronised(void);
/// Unmaps the pages of code and constants of the program and its libraries; what is wanted again comes back from the page
/// cache, page by page. Gives the bytes that this covers.
int64_t waypost_unmap_code(void);
/// Gives free memory of the heap back to the kernel, wherever in the heap it is.
void waypost_trim_heap(void);
/// A signalfd (SFD_CLOEXEC, SFD_NONBLOCK) for these signals, which are blocked for the calling thread; -1 and errno on failure.
int waypost_signalfd_of(const int *signals, int count);
/// Size of the terminal in characters: 0, or -1 and errno.
int waypost_terminal_size(int fd, int *columns, int *rows);
/// From now on a crash of the process first gives the terminal these settings back and writes these bytes to it, at most 64.
/// It still ends by its signal. NULL settings = there are none to give back.
void waypost_terminal_guard(int input, const struct termios *settings, int output, const char *bytes);

#endif
