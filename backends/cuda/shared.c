/*
 * shared.c - page-locked memory that other processes can map: a memfd, mapped here and registered
 * with the driver.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/page.h"
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/system.h"

void qi_cuda_page_close_descriptor(qi_cuda_page *page)
{
    if (page->descriptor >= 0)
        close(page->descriptor);
    page->descriptor = -1;
}

/* Fails with the error in errno. */
static quire_result fail_errno(const char *what, uint64_t size)
{
    int code = errno;
    quire_result result = code == EPERM || code == EACCES   ? QUIRE_ERROR_NOT_PERMITTED
                          : code == EINVAL || code == EBADF ? QUIRE_ERROR_INVALID_ARGUMENT
                                                            : QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    return quire_backend_fail(result, code, "%s of %s: %s", what, qi_bytes(size).text,
                              strerror(code));
}

/*
 * Reserves addresses, maps the descriptor over the aligned middle and unmaps the edges. If the
 * mapping fails, the middle is not unmapped: the system may have removed the reservation and given
 * the addresses to another thread. NULL and errno on failure.
 */
static void *map_aligned(int descriptor, uint64_t size, uint64_t alignment)
{
    uint64_t whole = 0;
    if (qi_add_overflows(size, alignment, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    char *base = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    char *start = base + qi_padding((uintptr_t)base, alignment);
    void *mapped = mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
    int code = errno;
    if (start > base)
        munmap(base, (size_t)(start - base));
    munmap(start + size, (size_t)(base + whole - (start + size)));
    errno = code;
    return mapped == MAP_FAILED ? NULL : mapped;
}

quire_result qi_cuda_shared_map(qi_cuda *cuda, uint64_t alignment, int descriptor,
                                qi_cuda_page *page)
{
    uint64_t least = (uint64_t)sysconf(_SC_PAGESIZE);
    page->type = QI_CUDA_PAGE_SHARED;
    page->descriptor = descriptor;
    page->bytes = map_aligned(descriptor, page->padded, alignment > least ? alignment : least);
    if (!page->bytes)
        return fail_errno("mapping a descriptor", page->padded);
    qi_cu_result code =
        cuda->f.MemHostRegister(page->bytes, page->padded,
                                QI_CU_MEMHOSTREGISTER_PORTABLE | QI_CU_MEMHOSTREGISTER_DEVICEMAP);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemHostRegister of %s", qi_bytes(page->padded).text);
    page->is_registered = true;
    code = cuda->f.MemHostGetDevicePointer(&page->address, page->bytes, 0);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemHostGetDevicePointer");
    page->host = page->bytes;
    page->types = QUIRE_CUDA_FD;
    return QUIRE_SUCCESS;
}

/* The label becomes part of the name under /proc/PID/fd. */
quire_result qi_cuda_shared_create(qi_cuda *cuda, const quire_page_request *request,
                                   qi_cuda_page *page)
{
    char name[64] = "quire ";
    if (!cuda->capabilities.host_register)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "the driver registers no host memory: page-locked pages cannot be "
            "exported");
    strncat(name, request->label ? request->label : "", sizeof name - strlen(name) - 1);
    int descriptor = qi_memfd_make(name, page->padded, 0);
    if (descriptor < 0)
        return fail_errno("memfd", page->padded);
    return qi_cuda_shared_map(cuda, request->alignment, descriptor, page);
}

quire_result qi_cuda_copy_descriptor(int from, int *descriptor)
{
    *descriptor = fcntl(from, F_DUPFD_CLOEXEC, 0);
    if (*descriptor >= 0)
        return QUIRE_SUCCESS;
    int code = errno;
    return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, code, "copying a descriptor: %s",
                              strerror(code));
}
