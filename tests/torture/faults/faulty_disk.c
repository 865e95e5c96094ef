/* A disk that fails on command: preloaded into a process, it makes calls on files under one directory fail.
 *
 * LAZULITE_FAULTY_UNDER    the directory (absolute)
 * LAZULITE_FAULTY_CONTROL  a file of RULES times `struct rule`, shared with whoever gives the commands
 *
 * A rule with no error costs one look at memory. Else the call's file is looked up, and the rule decides:
 *   - the first `after` calls succeed (for writes: bytes; the write on the border is cut short, as a full disk does);
 *   - of the rest each fails by a chance of `permille`, until `times` calls have failed (below 0: forever).
 * A sync that fails has lost what it was to sync: the file is cut back to what was synced before, which is what the
 * kernel may show from then on. A program that syncs again is misled by a success.
 *
 * Calls that libc makes inside itself (streams) are not seen, and the standard streams never fail. tests/torture/faults/faulty_disk.py has the other side.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE, SYNC, CREATE, NAME, ROOM, READ, OPEN, RULES };

struct rule {
    int64_t error, after, times, permille, seed;
    int64_t calls, failures;
    char name[40]; /* The file's name has this in it. */
};

#define FILES_MAX 65536

static struct rule *rules;
static char under[PATH_MAX];
static size_t under_length;
static _Atomic int64_t synced[FILES_MAX]; /* How much of an open file is on the disk. */

__attribute__((constructor)) static void begin(void) {
    const char *control = getenv("LAZULITE_FAULTY_CONTROL"), *directory = getenv("LAZULITE_FAULTY_UNDER");
    if (!control || !directory) return;
    int file = open(control, O_RDWR | O_CLOEXEC);
    if (file < 0) abort();
    under_length = strlen(strcpy(under, directory));
    void *shared = mmap(NULL, RULES * sizeof(struct rule), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED) abort();
    rules = shared;
}

static int armed(enum kind kind) { return rules && __atomic_load_n(&rules[kind].error, __ATOMIC_RELAXED) != 0; }

static int covers(const struct rule *rule, const char *path) {
    return strncmp(path, under, under_length) == 0 && strstr(path + under_length, rule->name) != NULL;
}

static uint64_t mixed(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Say how much of a call (1, or bytes) may be done: all of it, part of it, or -1, which is a failure by errno. */
static int64_t granted(enum kind kind, const char *path, int64_t wanted) {
    struct rule *rule = &rules[kind];
    int64_t error = rule->error;
    if (!error || !covers(rule, path)) return wanted;
    int64_t call = __atomic_add_fetch(&rule->calls, 1, __ATOMIC_RELAXED);
    int64_t left = __atomic_fetch_sub(&rule->after, wanted, __ATOMIC_RELAXED);
    if (left >= wanted) return wanted;
    if ((int64_t)(mixed(rule->seed + call) % 1000) >= rule->permille) return wanted;
    if (left > 0) return left;
    if (rule->times >= 0 && __atomic_fetch_sub(&rule->times, 1, __ATOMIC_RELAXED) <= 0) {
        rule->times = 0;
        return wanted;
    }
    __atomic_add_fetch(&rule->failures, 1, __ATOMIC_RELAXED);
    errno = (int)error;
    return -1;
}

static int64_t granted_file(enum kind kind, int file, int64_t wanted) {
    char link[40], path[PATH_MAX];
    if (file <= STDERR_FILENO || !armed(kind)) return wanted;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int before = errno;
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length < 0) return wanted;
    path[length] = '\0';
    return granted(kind, path, wanted);
}

static int refused(enum kind kind, const char *path) { return armed(kind) && granted(kind, path, 1) < 0; }

#define REAL(type, name, ...)                                          \
    static type (*real)(__VA_ARGS__);                                  \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* --- bytes */

ssize_t write(int file, const void *bytes, size_t count) {
    REAL(ssize_t, "write", int, const void *, size_t);
    int64_t some = granted_file(WRITE, file, (int64_t)count);
    return some < 0 ? -1 : real(file, bytes, (size_t)some);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return granted_file(WRITE, file, 1) < 0 ? -1 : real(file, parts, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    int64_t some = granted_file(WRITE, file, (int64_t)count);
    return some < 0 ? -1 : real(file, bytes, (size_t)some, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off_t at) { return pwrite(file, bytes, count, at); }

ssize_t read(int file, void *bytes, size_t count) {
    REAL(ssize_t, "read", int, void *, size_t);
    return granted_file(READ, file, 1) < 0 ? -1 : real(file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t at) {
    REAL(ssize_t, "pread", int, void *, size_t, off_t);
    return granted_file(READ, file, 1) < 0 ? -1 : real(file, bytes, count, at);
}
ssize_t pread64(int file, void *bytes, size_t count, off_t at) { return pread(file, bytes, count, at); }

/* --- syncs */

static void note_size(int file) {
    struct stat status;
    if (rules && file >= 0 && file < FILES_MAX && fstat(file, &status) == 0 && S_ISREG(status.st_mode))
        synced[file] = status.st_size;
}

static int synced_by(int (*real)(int), int file) {
    if (granted_file(SYNC, file, 1) < 0) {
        int error = errno;
        struct stat status;
        if (file < FILES_MAX && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > synced[file])
            if (ftruncate(file, synced[file]) != 0) abort();
        errno = error;
        return -1;
    }
    int result = real(file);
    if (result == 0) note_size(file);
    return result;
}

int fsync(int file) {
    REAL(int, "fsync", int);
    return synced_by(real, file);
}

int fdatasync(int file) {
    REAL(int, "fdatasync", int);
    return synced_by(real, file);
}

/* --- names */

static int opened(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    if (refused(writes ? CREATE : OPEN, path)) return -1;
    int file = real(path, flags, mode);
    if (writes) note_size(file);
    return file;
}

#define MODE(flags)                                                    \
    mode_t mode = 0;                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                             \
        va_list rest;                                                  \
        va_start(rest, flags);                                         \
        mode = va_arg(rest, mode_t);                                   \
        va_end(rest);                                                  \
    }

int open(const char *path, int flags, ...) {
    REAL(int, "open", const char *, int, ...);
    MODE(flags)
    return opened(real, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL(int, "open64", const char *, int, ...);
    MODE(flags)
    return opened(real, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return refused(CREATE, path) ? -1 : real(path, mode);
}

int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    return refused(CREATE, to) ? -1 : real(from, to);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return refused(NAME, to) ? -1 : real(from, to);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return refused(NAME, path) ? -1 : real(path);
}

/* --- room */

int ftruncate(int file, off_t length) {
    REAL(int, "ftruncate", int, off_t);
    return granted_file(ROOM, file, 1) < 0 ? -1 : real(file, length);
}
int ftruncate64(int file, off_t length) { return ftruncate(file, length); }

int statvfs(const char *path, struct statvfs *space) {
    REAL(int, "statvfs", const char *, struct statvfs *);
    int result = real(path, space);
    int before = errno;
    if (result == 0 && armed(ROOM) && granted(ROOM, path, 1) < 0) space->f_bavail = space->f_bfree = 0;
    errno = before;
    return result;
}
int statvfs64(const char *path, struct statvfs64 *space) { return statvfs(path, (struct statvfs *)space); }
