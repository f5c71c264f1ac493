/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * watch.c - reads a file that another process writes (see watch.h).
 *
 * Only the file is read: the process that writes it does not notice. A recording that begins again
 * is another file, or the same one, which became shorter or has another first block.
 */
#include "src/tool/top/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/tool/options.h"

/* Holds at least one complete block. */
enum { PIECE = 4 * QI_RECORDING_BLOCK };

static bool complain(const watch *w, const char *what)
{
    print_problem("quire: %s: %s", w->path, what);
    return false;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* Without O_NONBLOCK the open of a pipe waits for its writer. */
static bool open_file(watch *w)
{
    struct stat info;
    w->file = open(w->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (w->file < 0 || fstat(w->file, &info))
        return complain(w, strerror(errno));
    return S_ISREG(info.st_mode) || complain(w, "is not a regular file, which can be followed");
}

static void close_file(watch *w)
{
    if (w->file >= 0)
        close(w->file);
    w->file = -1;
}

/* A file that was removed stays open: its process may still write to it. */
static bool is_replaced(const watch *w)
{
    struct stat named, opened;
    return !stat(w->path, &named) && !fstat(w->file, &opened) &&
           (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino);
}

/* The first block does not change while a recording grows. */
static bool is_cut(const watch *w)
{
    char first[sizeof w->first];
    struct stat info;
    if (fstat(w->file, &info) || (uint64_t)info.st_size < w->follower.recording.offset + w->pending)
        return true;
    ssize_t size = pread(w->file, first, sizeof first, 0);
    return size < (ssize_t)w->first_size || memcmp(first, w->first, w->first_size) != 0;
}

static bool begin_again(watch *w)
{
    if (is_replaced(w)) {
        close_file(w);
        if (!open_file(w))
            return false;
    }
    finish_follower(&w->follower);
    w->restarts++;
    w->has_grown = true;
    w->state = WATCH_UNKNOWN;
    w->pending = w->first_size = 0;
    return !begin_follower(&w->follower, w->path) || (fail_with_last_error(), false);
}

/* ---- one look ----------------------------------------------------------------------------- */

/*
 * The recorder of QUIRE_TRACE has an exclusive lock until it ends. A shared lock is refused then;
 * otherwise it is given back at once, so that a recorder that begins finds the file free.
 */
static void look_at_lock(watch *w)
{
    if (!flock(w->file, LOCK_SH | LOCK_NB)) {
        flock(w->file, LOCK_UN);
        w->state = w->state == WATCH_UNKNOWN ? WATCH_UNKNOWN : WATCH_ENDED;
    } else if (errno == EWOULDBLOCK) {
        w->state = WATCH_RECORDING;
    }
}

static void look_at_time(watch *w, const struct stat *info)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t silent = (int64_t)(now.tv_sec - info->st_mtim.tv_sec) * 1000000000 + now.tv_nsec -
                     info->st_mtim.tv_nsec;
    w->silent_ns = silent > 0 ? (uint64_t)silent : 0;
}

/* Reads to the end that the file had at the begin of the look. */
static quire_result read_growth(watch *w, uint64_t end, int *error)
{
    const uint64_t *offset = &w->follower.recording.offset;
    ssize_t got = 0;
    size_t used = 1;
    w->pending = 0;
    while (used && *offset < end && (got = pread(w->file, w->bytes, PIECE, (off_t)*offset)) > 0) {
        if (!*offset) {
            w->first_size = (size_t)got < sizeof w->first ? (size_t)got : sizeof w->first;
            memcpy(w->first, w->bytes, w->first_size);
        }
        quire_result result = follow(&w->follower, w->bytes, (size_t)got, &used);
        if (result)
            return result;
        w->pending = (uint64_t)got - used;
    }
    *error = got < 0 ? errno : 0;
    return QUIRE_SUCCESS;
}

/* The lock is looked at first: a recorder that has ended has written everything. */
static quire_result read_file_once(watch *w, int *error)
{
    struct stat info;
    uint64_t before = w->follower.recording.offset + w->pending;
    look_at_lock(w);
    if (fstat(w->file, &info)) {
        *error = errno;
        return QUIRE_SUCCESS;
    }
    look_at_time(w, &info);
    quire_result result = read_growth(w, (uint64_t)info.st_size, error);
    w->has_grown = w->has_grown || w->follower.recording.offset + w->pending != before;
    return result;
}

/* The file can begin again while it is read, and then has bytes of two recordings. */
bool look_at_file(watch *w)
{
    int error = 0;
    w->has_grown = false;
    if ((is_replaced(w) || is_cut(w)) && !begin_again(w))
        return false;
    quire_result result = read_file_once(w, &error);
    if (result == QUIRE_ERROR_BAD_FILE && (is_replaced(w) || is_cut(w))) {
        if (!begin_again(w))
            return false;
        result = read_file_once(w, &error);
    }
    if (result)
        fail_with_last_error();
    return !result && (!error || complain(w, strerror(error)));
}

/* ---- begin and end ------------------------------------------------------------------------ */

bool begin_watch(watch *w, const char *path)
{
    *w = (watch){.path = path, .file = -1, .bytes = malloc(PIECE)};
    if (begin_follower(&w->follower, path))
        return fail_with_last_error() == EXIT_OK;
    return w->bytes ? open_file(w) : complain(w, "does not fit into host memory");
}

void end_watch(watch *w)
{
    close_file(w);
    finish_follower(&w->follower);
    free(w->bytes);
    w->bytes = NULL;
}
