/*
 * memfd.c - creates sealed memory files and verifies those of other processes.
 */
#include "src/base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int qi_memfd_make(const char *name, uint64_t size, unsigned flags)
{
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (descriptor < 0)
        return -1;
    if (ftruncate(descriptor, (off_t)size) ||
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        int code = errno;
        close(descriptor);
        errno = code;
        return -1;
    }
    return descriptor;
}

bool qi_memfd_has(int descriptor, uint64_t size)
{
    struct stat file;
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(descriptor, &file) &&
           (uint64_t)file.st_size >= size;
}
