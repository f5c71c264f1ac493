/*
 * block.c - pages that the driver allocates whole: cuMemAlloc, managed and page-locked memory; and
 * page-locked memory that can be exported: a memfd, mapped and registered.
 *
 * The driver aligns what it allocates to 256 bytes at least. A device with kinds of cuMemAlloc
 * promises no more, and the core sees to larger alignments; of others pages are as aligned as
 * asked: where the driver's address is not, more is allocated and the page begins within it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "src/base/bits.h"
#include "src/base/memfd.h"
#include "src/base/result.h"

/* ---- device and managed memory ------------------------------------------------------------ */

static qi_cu_result free_block(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->block ? cuda->f.MemFree(page->block) : QI_CUDA_SUCCESS;
    if (!code || qi_cuda_is_lost(code))
        page->block = 0;
    return code;
}

static qi_cu_result allocate(qi_cuda *cuda, qi_cuda_page *page, uint64_t size)
{
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_MANAGED)
        return cuda->f.MemAllocManaged(&page->block, size, QI_CU_MEM_ATTACH_GLOBAL);
    return cuda->f.MemAlloc(&page->block, size);
}

static quire_result make_block(qi_cuda *cuda, uint64_t alignment, qi_cuda_page *page)
{
    page->make = QI_CUDA_ALLOCATED;
    qi_cu_result code = allocate(cuda, page, page->padded);
    if (!code && qi_padding(page->block, alignment)) {
        code = free_block(cuda, page);
        if (!code)
            code = allocate(cuda, page, page->padded + alignment);
    }
    if (code)
        return qi_cuda_fail(&cuda->f, code, "allocating %s of memory kind %u",
                            qi_bytes(page->padded).text, page->kind);
    page->address = page->block + qi_padding(page->block, alignment);
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_MANAGED)
        page->host = (void *)(uintptr_t)page->address;
    return QUIRE_SUCCESS;
}

/* ---- page-locked memory ------------------------------------------------------------------- */

static qi_cu_result free_locked(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->locked ? cuda->f.MemFreeHost(page->locked) : QI_CUDA_SUCCESS;
    if (!code || qi_cuda_is_lost(code))
        page->locked = NULL;
    return code;
}

static qi_cu_result lock_more(qi_cuda *cuda, qi_cuda_page *page, uint64_t size)
{
    unsigned flags = QI_CU_MEMHOSTALLOC_PORTABLE | QI_CU_MEMHOSTALLOC_DEVICEMAP;
    if (cuda->kinds[page->kind].page_kind == QUIRE_CUDA_COMBINED)
        flags |= QI_CU_MEMHOSTALLOC_WRITECOMBINED;
    qi_cu_result code = cuda->f.MemHostAlloc(&page->locked, size, flags);
    if (!code)
        code = cuda->f.MemHostGetDevicePointer(&page->address, page->locked, 0);
    return code;
}

static quire_result make_locked(qi_cuda *cuda, uint64_t alignment, qi_cuda_page *page)
{
    page->make = QI_CUDA_LOCKED;
    qi_cu_result code = lock_more(cuda, page, page->padded);
    if (!code && qi_padding(page->address, alignment)) {
        code = free_locked(cuda, page);
        if (!code)
            code = lock_more(cuda, page, page->padded + alignment);
    }
    if (code)
        return qi_cuda_fail(&cuda->f, code, "page-locking %s of host memory",
                            qi_bytes(page->padded).text);
    uint64_t padding = qi_padding(page->address, alignment);
    page->address += padding;
    page->host = (char *)page->locked + padding;
    return QUIRE_SUCCESS;
}

/* ---- page-locked memory for other processes ----------------------------------------------- */

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
 * Maps the descriptor over aligned addresses of a reservation, whose edges go. Where the mapping
 * fails the middle stays: the system may have given it to another thread by then.
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
    page->make = QI_CUDA_SHARED;
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

static quire_result make_shared(qi_cuda *cuda, const quire_page_request *request,
                                qi_cuda_page *page)
{
    char name[64] = "quire ";
    if (!cuda->offers.host_register)
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

/* ---- both --------------------------------------------------------------------------------- */

quire_result qi_cuda_block_make(qi_cuda *cuda, const quire_page_request *request,
                                qi_cuda_page *page)
{
    bool is_locked = cuda->kinds[page->kind].page_kind == QUIRE_CUDA_PINNED ||
                     cuda->kinds[page->kind].page_kind == QUIRE_CUDA_COMBINED;
    uint64_t alignment = cuda->page_alignment ? cuda->page_alignment : request->alignment;
    if (is_locked)
        return request->exportable ? make_shared(cuda, request, page)
                                   : make_locked(cuda, alignment, page);
    if (request->exportable)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "pages of memory kind %u cannot be exported", page->kind);
    return make_block(cuda, alignment, page);
}

bool qi_cuda_block_take_down(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = free_block(cuda, page);
    if (!code)
        code = free_locked(cuda, page);
    if (!code && page->is_registered)
        code = cuda->f.MemHostUnregister(page->bytes);
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->is_registered = false;
    if (page->bytes)
        munmap(page->bytes, page->padded);
    qi_cuda_close(page);
    page->bytes = NULL;
    return true;
}
