/*
 * Records what processes do to the files below one directory: preloaded (LD_PRELOAD) into each of them.
 *
 * Environment: RECORDER_ROOT   the directory, absolute; everything else passes through untouched.
 *              RECORDER_LOG    a file outside of it, to which the records are appended (see recorder.py).
 *              RECORDER_STATE  a `struct state`, mapped by everybody concerned.
 *
 * What holds:
 * - A call and its record are one step for all processes together, under a lock on the state's file. So the records
 *   are in the order in which the calls took effect, and whoever holds the lock sees files and records agree.
 * - The calls are numbered from 0 over all processes. The one with the number `cut_at` is not made, or, if
 *   `last_sync_us` says so, the next end of a sync: its process is killed instead, and so is every process that comes
 *   to the lock later. That is the cut of power.
 * - A sync is two calls, a begin and an end, with the lock free in between. Nothing is really synced: what a sync
 *   makes durable is decided when the records are replayed.
 * - What cannot be recorded ends the process with a message. What this file does not know at all is found by comparing
 *   the replayed records with the directory, which every power cut does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE = 1, WRITE, RESIZE, SYNC, SYNCED, MKDIR, RENAME, LINK, UNLINK };

struct state {
    uint64_t calls;         /* recorded so far */
    uint64_t cut_at;
    uint64_t sync_us;       /* how long a sync takes */
    uint64_t last_sync_us;  /* how long one takes that is cut; 0: the cut may come at any call */
    uint64_t off;           /* the power is off */
};

struct record {
    uint32_t kind, first_bytes, second_bytes, padding;
    uint64_t inode, number; /* number: an offset, a size, or which call began a sync */
};

static char root[PATH_MAX];
static size_t root_bytes;
static int state_file = -1, log_file = -1;
static volatile struct state *state;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

static void fail(const char *what)
{
    dprintf(2, "recorder: cannot record %s\n", what);
    abort();
}

__attribute__((constructor)) static void begin(void)
{
    const char *directory = getenv("RECORDER_ROOT"), *log = getenv("RECORDER_LOG"), *shared = getenv("RECORDER_STATE");
    if (!directory || !log || !shared)
        return;
    state_file = REAL(open)(shared, O_RDWR | O_CLOEXEC);
    log_file = REAL(open)(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    state = REAL(mmap)(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, state_file, 0);
    if (state_file < 0 || log_file < 0 || state == MAP_FAILED || strlen(directory) >= sizeof root)
        fail("anything: no log or no state");
    strcpy(root, directory);
    root_bytes = strlen(root);
}

/* --- the lock, the records, the cut */

static int cut_due(void)
{
    return state->calls >= state->cut_at;
}

static void enter(enum kind kind)
{
    pthread_mutex_lock(&mutex);
    while (flock(state_file, LOCK_EX))
        if (errno != EINTR)
            fail("under a lock");
    if (cut_due() && (kind == SYNCED || !state->last_sync_us))
        state->off = 1;
    if (state->off) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
}

static void leave(void)
{
    int before = errno;
    flock(state_file, LOCK_UN);
    pthread_mutex_unlock(&mutex);
    errno = before;
}

static void note(enum kind kind, uint64_t inode, uint64_t number, const void *first, size_t first_bytes,
                 const void *second, size_t second_bytes)
{
    int before = errno;
    struct record record = {kind, first_bytes, second_bytes, 0, inode, number};
    struct iovec parts[] = {{&record, sizeof record}, {(void *)first, first_bytes}, {(void *)second, second_bytes}};
    if (REAL(writev)(log_file, parts, 3) != (ssize_t)(sizeof record + first_bytes + second_bytes))
        fail("a call: the log is full");
    state->calls++;
    errno = before;
}

static void note_path(enum kind kind, uint64_t inode, const char *first, const char *second)
{
    note(kind, inode, 0, first, strlen(first), second ? second : "", second ? strlen(second) : 0);
}

/* --- whose file it is */

static int below_root(const char *path)
{
    return root_bytes && !strncmp(path, root, root_bytes) && (path[root_bytes] == '/' || !path[root_bytes]);
}

/* Whether a path, as *at functions take it, is below the root; `whole` becomes an absolute form of it. */
static int ours(int directory, const char *path, char whole[PATH_MAX])
{
    char base[PATH_MAX] = "", link[64];
    int before = errno;
    if (!root_bytes || !path)
        return 0;
    if (path[0] != '/' && directory == AT_FDCWD) {
        if (!getcwd(base, sizeof base))
            base[0] = 0;
    } else if (path[0] != '/') {
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t size = readlink(link, base, sizeof base - 1);
        base[size < 0 ? 0 : size] = 0;
    }
    int size = snprintf(whole, PATH_MAX, "%s%s%s", base, base[0] ? "/" : "", path);
    errno = before;
    return size < PATH_MAX && below_root(whole);
}

/* The inode of an open file or directory below the root, 0 for any other. */
static uint64_t inode_of(int file)
{
    struct stat facts;
    char link[64], path[PATH_MAX];
    int before = errno;
    uint64_t inode = 0;
    if (root_bytes && !fstat(file, &facts) && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t size = readlink(link, path, sizeof path - 1);
        path[size < 0 ? 0 : size] = 0;
        inode = below_root(path) ? facts.st_ino : 0;
    }
    errno = before;
    return inode;
}

static uint64_t inode_at(const char *path)
{
    struct stat facts;
    int before = errno;
    uint64_t inode = lstat(path, &facts) ? 0 : facts.st_ino;
    errno = before;
    return inode;
}

/* --- opening */

static int opened(int directory, const char *path, int flags, mode_t mode)
{
    char whole[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !ours(directory, path, whole))
        return REAL(openat)(directory, path, flags, mode);
    if ((flags & O_TMPFILE) == O_TMPFILE)
        fail("a file without a name");
    enter(CREATE);
    int existed = inode_at(whole) != 0;
    int file = REAL(openat)(directory, path, flags, mode);
    if (file >= 0 && !existed)
        note_path(CREATE, inode_at(whole), whole, NULL);
    else if (file >= 0 && flags & O_TRUNC)
        note(RESIZE, inode_of(file), 0, "", 0, "", 0);
    leave();
    return file;
}

#define MODE(flags, mode)                                                                                              \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {                                                     \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode = va_arg(arguments, mode_t);                                                                              \
        va_end(arguments);                                                                                             \
    }

int open(const char *path, int flags, ...)
{
    MODE(flags, mode)
    return opened(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
    MODE(flags, mode)
    return opened(directory, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
    return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int directory, const char *path, int flags, ...) __attribute__((alias("openat")));
int creat64(const char *path, mode_t mode) __attribute__((alias("creat")));

FILE *fopen(const char *path, const char *mode)
{
    char whole[PATH_MAX];
    if (strpbrk(mode, "wa+") && ours(AT_FDCWD, path, whole))
        fail("fopen for writing");
    return REAL(fopen)(path, mode);
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (file >= 0 && protection & PROT_WRITE && flags & MAP_SHARED && inode_of(file))
        fail("writes to mapped memory");
    return REAL(mmap)(address, size, protection, flags, file, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));

/* --- contents */

/* One call that writes; `at` is where, or -1 for the file's position, which then has moved. */
#define WRITING(file, at, call, note_all)                                                                              \
    uint64_t inode = inode_of(file);                                                                                   \
    if (!inode)                                                                                                        \
        return call;                                                                                                   \
    enter(WRITE);                                                                                                      \
    ssize_t written = call;                                                                                            \
    if (written > 0) {                                                                                                 \
        off_t where = (at) >= 0 ? (at) : lseek(file, 0, SEEK_CUR) - written;                                           \
        note_all;                                                                                                      \
    }                                                                                                                  \
    leave();                                                                                                           \
    return written;

static void note_parts(uint64_t inode, off_t where, const struct iovec *parts, ssize_t left)
{
    for (; left > 0; parts++) {
        size_t size = parts->iov_len < (size_t)left ? parts->iov_len : (size_t)left;
        note(WRITE, inode, where, parts->iov_base, size, "", 0);
        where += size;
        left -= size;
    }
}

ssize_t write(int file, const void *bytes, size_t size)
{
    WRITING(file, -1, REAL(write)(file, bytes, size), note(WRITE, inode, where, bytes, written, "", 0))
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
    WRITING(file, at, REAL(pwrite)(file, bytes, size, at), note(WRITE, inode, where, bytes, written, "", 0))
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    WRITING(file, -1, REAL(writev)(file, parts, count), note_parts(inode, where, parts, written))
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at)
{
    WRITING(file, at, REAL(pwritev)(file, parts, count, at), note_parts(inode, where, parts, written))
}

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t at, int flags)
{
    WRITING(file, at, REAL(pwritev2)(file, parts, count, at, flags), note_parts(inode, where, parts, written))
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off_t at) __attribute__((alias("pwrite")));
ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at) __attribute__((alias("pwritev")));
ssize_t pwritev64v2(int file, const struct iovec *parts, int count, off_t at, int flags)
    __attribute__((alias("pwritev2")));

/* Calls that change a file's size: what it is afterwards is noted. */
#define RESIZING(file, call)                                                                                           \
    uint64_t inode = inode_of(file);                                                                                   \
    if (!inode)                                                                                                        \
        return call;                                                                                                   \
    enter(RESIZE);                                                                                                     \
    struct stat facts;                                                                                                 \
    int failed = call;                                                                                                 \
    if (!failed && !fstat(file, &facts))                                                                               \
        note(RESIZE, inode, facts.st_size, "", 0, "", 0);                                                              \
    leave();                                                                                                           \
    return failed;

int ftruncate(int file, off_t size)
{
    RESIZING(file, REAL(ftruncate)(file, size))
}

int truncate(const char *path, off_t size)
{
    char whole[PATH_MAX];
    if (!ours(AT_FDCWD, path, whole))
        return REAL(truncate)(path, size);
    enter(RESIZE);
    int failed = REAL(truncate)(path, size);
    if (!failed)
        note(RESIZE, inode_at(whole), size, "", 0, "", 0);
    leave();
    return failed;
}

int posix_fallocate(int file, off_t at, off_t size)
{
    RESIZING(file, REAL(posix_fallocate)(file, at, size))
}

int fallocate(int file, int mode, off_t at, off_t size)
{
    if (mode & ~FALLOC_FL_KEEP_SIZE && inode_of(file))
        fail("holes in a file");
    RESIZING(file, REAL(fallocate)(file, mode, at, size))
}

int ftruncate64(int file, off_t size) __attribute__((alias("ftruncate")));
int truncate64(const char *path, off_t size) __attribute__((alias("truncate")));
int posix_fallocate64(int file, off_t at, off_t size) __attribute__((alias("posix_fallocate")));
int fallocate64(int file, int mode, off_t at, off_t size) __attribute__((alias("fallocate")));

/* Refused, so that callers fall back to reading and writing. */
ssize_t sendfile(int to, int from, off_t *at, size_t size)
{
    if (inode_of(to)) {
        errno = EINVAL;
        return -1;
    }
    return REAL(sendfile)(to, from, at, size);
}

ssize_t sendfile64(int to, int from, off_t *at, size_t size) __attribute__((alias("sendfile")));

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags)
{
    if (inode_of(to)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return REAL(copy_file_range)(from, from_at, to, to_at, size, flags);
}

/* --- syncs */

static void synced(uint64_t inode)
{
    enter(SYNC);
    uint64_t call = state->calls;
    note(SYNC, inode, 0, "", 0, "", 0);
    leave();
    usleep(cut_due() && state->last_sync_us ? state->last_sync_us : state->sync_us);
    enter(SYNCED);
    note(SYNCED, inode, call, "", 0, "", 0);
    leave();
}

int fsync(int file)
{
    uint64_t inode = inode_of(file);
    if (!inode)
        return REAL(fsync)(file);
    synced(inode);
    return 0;
}

int fdatasync(int file)
{
    return fsync(file);
}

/* --- names */

#define NAMING(directory, path, kind, call)                                                                            \
    char whole[PATH_MAX];                                                                                              \
    if (!ours(directory, path, whole))                                                                                 \
        return call;                                                                                                   \
    enter(kind);                                                                                                       \
    int failed = call;                                                                                                 \
    if (!failed)                                                                                                       \
        note_path(kind, inode_at(whole), whole, NULL);                                                                 \
    leave();                                                                                                           \
    return failed;

int mkdir(const char *path, mode_t mode)
{
    NAMING(AT_FDCWD, path, MKDIR, REAL(mkdir)(path, mode))
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    NAMING(directory, path, MKDIR, REAL(mkdirat)(directory, path, mode))
}

int unlink(const char *path)
{
    NAMING(AT_FDCWD, path, UNLINK, REAL(unlink)(path))
}

int unlinkat(int directory, const char *path, int flags)
{
    NAMING(directory, path, UNLINK, REAL(unlinkat)(directory, path, flags))
}

int rmdir(const char *path)
{
    NAMING(AT_FDCWD, path, UNLINK, REAL(rmdir)(path))
}

#define NAMING_TWICE(from_directory, from, to_directory, to, kind, call)                                               \
    char before[PATH_MAX], after[PATH_MAX];                                                                            \
    int from_ours = ours(from_directory, from, before), to_ours = ours(to_directory, to, after);                       \
    if (!from_ours && !to_ours)                                                                                        \
        return call;                                                                                                   \
    if (!from_ours || !to_ours)                                                                                        \
        fail("a file that comes from elsewhere or goes there");                                                        \
    enter(kind);                                                                                                       \
    int failed = call;                                                                                                 \
    if (!failed)                                                                                                       \
        note_path(kind, 0, before, after);                                                                             \
    leave();                                                                                                           \
    return failed;

int rename(const char *from, const char *to)
{
    NAMING_TWICE(AT_FDCWD, from, AT_FDCWD, to, RENAME, REAL(rename)(from, to))
}

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    NAMING_TWICE(from_directory, from, to_directory, to, RENAME, REAL(renameat)(from_directory, from, to_directory, to))
}

int link(const char *from, const char *to)
{
    NAMING_TWICE(AT_FDCWD, from, AT_FDCWD, to, LINK, REAL(link)(from, to))
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags)
{
    NAMING_TWICE(from_directory, from, to_directory, to, LINK,
                 REAL(linkat)(from_directory, from, to_directory, to, flags))
}
