/*
 * output_file.c - see output_file.h.
 */
#include "src/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int close_and_fail(int file, int error)
{
    close(file);
    errno = error;
    return -1;
}

/* Without O_NONBLOCK the open of a pipe waits for a reader. Writes wait as usual. */
int qi_output_open(const char *path, int flags)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0666);
    int status = file < 0 ? -1 : fcntl(file, F_GETFL);
    if (status < 0 || !fcntl(file, F_SETFL, status & ~O_NONBLOCK))
        return file;
    return close_and_fail(file, errno);
}

int qi_output_open_own(char *path, size_t capacity, int flags)
{
    int file = qi_output_open(path, flags);
    if (file < 0 || !flock(file, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
        return file;
    size_t length = strlen(path);
    int more = snprintf(path + length, capacity - length, ".%ld", (long)getpid());
    if (more < 0 || (size_t)more >= capacity - length)
        return close_and_fail(file, ENAMETOOLONG);
    close(file);
    return qi_output_open(path, O_NOFOLLOW);
}

int qi_output_write(int file, const char *text, size_t size)
{
    while (size) {
        ssize_t written = write(file, text, size);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            text += written;
            size -= (size_t)written;
        }
    }
    return 0;
}
