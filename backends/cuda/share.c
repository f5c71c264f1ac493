/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * share.c - pages for and from other processes and APIs. Page-locked memory is shared as a memfd, a
 * block of cuMemAlloc by its legacy handle, a chunk by a handle of the driver. Memory of other APIs
 * comes as a descriptor, memory of the caller as a pointer.
 */
#include "backends/cuda/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cuda/device.h"
#include "backends/cuda/virtual.h"
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/system.h"

/* ---- page-locked memory ------------------------------------------------------------------- */

/*
 * Page-locked memory that other processes can map is a memfd, mapped here and registered with the
 * driver.
 */

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

/* Maps and registers page->padded bytes of a memfd. The page owns the descriptor, also on failure.
   In the context. */
static quire_result map_shared(qi_cuda *cuda, uint64_t alignment, int descriptor,
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
    return map_shared(cuda, request->alignment, descriptor, page);
}

/* Duplicates a descriptor with close-on-exec. */
static quire_result copy_descriptor(int from, int *descriptor)
{
    *descriptor = fcntl(from, F_DUPFD_CLOEXEC, 0);
    if (*descriptor >= 0)
        return QUIRE_SUCCESS;
    int code = errno;
    return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, code, "copying a descriptor: %s",
                              strerror(code));
}

/* ---- legacy handles ----------------------------------------------------------------------- */

/*
 * Pages of cuMemAlloc have the driver's legacy handles. A handle names the whole block that
 * cuMemAlloc returned. Pages of device memory begin with their block, so that offsets in the page
 * are offsets in the block.
 */

/* Says why the page has no legacy handle. */
static quire_result check_ipc(const qi_cuda *cuda, const qi_cuda_page *page)
{
    switch (page->type) {
    case QI_CUDA_PAGE_VIRTUAL:
    case QI_CUDA_PAGE_TILES:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a page of virtual memory management has no legacy handle: export a "
                       "descriptor");
    case QI_CUDA_PAGE_POOLED:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "a page of a memory pool has no legacy handle");
    case QI_CUDA_PAGE_OPENED:
    case QI_CUDA_PAGE_BORROWED:
    case QI_CUDA_PAGE_EXTERNAL:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the page is memory that quire did not allocate: only its owner can export "
                       "it");
    default:
        break;
    }
    if (page->type != QI_CUDA_PAGE_ALLOCATED ||
        cuda->kinds[page->kind].page_kind == QUIRE_CUDA_MANAGED)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "only device-local pages of cuMemAlloc have legacy handles");
    return cuda->f.IpcGetMemHandle
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver has no legacy handles");
}

quire_result quire_cuda_export_ipc(quire_memory *memory, quire_allocation allocation, void *ipc)
{
    if (ipc)
        memset(ipc, 0, QUIRE_CUDA_IPC_SIZE);
    if (!memory || !ipc)
        return qi_fail_null("quire_cuda_export_ipc", !memory ? "memory" : "ipc");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    qi_cu_ipc_handle handle;
    result = check_ipc(cuda, page);
    if (!result)
        result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.IpcGetMemHandle(&handle, page->block);
    qi_cuda_leave(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuIpcGetMemHandle");
    memcpy(ipc, handle.reserved, QUIRE_CUDA_IPC_SIZE);
    return QUIRE_SUCCESS;
}

/* The driver says "invalid context" to the process that made the handle, and to a second context of
   a device; the context itself is valid here. */
static quire_result fail_open(const qi_cuda *cuda, qi_cu_result code)
{
    if (code != QI_CUDA_ERROR_INVALID_CONTEXT)
        return qi_cuda_fail(&cuda->f, code, "cuIpcOpenMemHandle");
    return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code,
                              "the legacy handle is of this process, which cannot open it, or "
                              "another context of '%s' opens the handles of its process",
                              cuda->name);
}

/* Not every driver tells the size of a block of another process. */
static quire_result check_size(const qi_cuda *cuda, const qi_cuda_page *page)
{
    qi_cu_ptr base = 0;
    size_t size = 0;
    if (!cuda->f.MemGetAddressRange || cuda->f.MemGetAddressRange(&base, &size, page->block))
        return QUIRE_SUCCESS;
    uint64_t rest = size - (page->block - base);
    return page->padded <= rest
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                    "an import of %llu bytes: the block has %llu",
                                    (unsigned long long)page->padded, (unsigned long long)rest);
}

/* On failure the page holds what was opened. */
static quire_result import_ipc(qi_cuda *cuda, const quire_cuda_import *import, qi_cuda_page *page)
{
    qi_cu_ipc_handle handle;
    page->type = QI_CUDA_PAGE_OPENED;
    if (!cuda->f.IpcOpenMemHandle || !cuda->f.IpcCloseMemHandle)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "the driver opens no legacy handles");
    memcpy(handle.reserved, import->ipc, sizeof handle.reserved);
    qi_cu_result code =
        cuda->f.IpcOpenMemHandle(&page->block, handle, QI_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (code) {
        page->block = 0;
        return fail_open(cuda, code);
    }
    page->address = page->block;
    return check_size(cuda, page);
}

bool qi_cuda_ipc_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->block ? cuda->f.IpcCloseMemHandle(page->block) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->block = 0;
    return true;
}

/* ---- memory of other APIs ----------------------------------------------------------------- */

/*
 * Another API, such as Vulkan, exports its memory as an opaque file descriptor. The driver imports
 * it as external memory; one buffer covers all of it.
 */

/* A UUID as nvidia-smi writes it: 8-4-4-4-12 digits. */
typedef struct uuid_text {
    char text[37];
} uuid_text;

static uuid_text uuid_in_words(const void *uuid)
{
    const unsigned char *bytes = uuid;
    uuid_text out = {""};
    size_t length = 0;
    for (size_t i = 0; i < QUIRE_CUDA_UUID_SIZE; i++)
        length += (size_t)snprintf(out.text + length, sizeof out.text - length, "%s%02x",
                                   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    return out;
}

/* UNSUPPORTED if `uuid` names another GPU than the device. NULL is not checked. */
static quire_result check_uuid(const qi_cuda *cuda, const void *uuid)
{
    static const unsigned char none[QUIRE_CUDA_UUID_SIZE];
    if (!uuid || !memcmp(uuid, cuda->uuid, sizeof cuda->uuid))
        return QUIRE_SUCCESS;
    if (!memcmp(cuda->uuid, none, sizeof none))
        return qi_fail_text(
            QUIRE_ERROR_UNSUPPORTED,
            "the memory is of GPU %s, and the driver does not tell which GPU '%s' is",
            uuid_in_words(uuid).text, cuda->name);
    return qi_fail_text(
        QUIRE_ERROR_UNSUPPORTED, "the memory is of GPU %s, and '%s', device %d, is GPU %s",
        uuid_in_words(uuid).text, cuda->name, cuda->device, uuid_in_words(cuda->uuid).text);
}

/* The page owns the descriptor until the driver accepts it. In the context. */
static quire_result import_memory(qi_cuda *cuda, const quire_cuda_import *import, int descriptor,
                                  qi_cuda_page *page)
{
    const qi_cu_external_desc desc = {
        .type = QI_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        .handle = {.fd = descriptor},
        .size = page->padded,
        .flags = import->is_dedicated ? QI_CUDA_EXTERNAL_MEMORY_DEDICATED : 0,
    };
    page->type = QI_CUDA_PAGE_EXTERNAL;
    page->descriptor = descriptor; /* the page's until the driver accepts it */
    qi_cu_result code = cuda->f.ImportExternalMemory(&page->external, &desc);
    if (code) {
        page->external = NULL;
        return qi_cuda_fail(&cuda->f, code, "cuImportExternalMemory of %s",
                            qi_bytes(page->padded).text);
    }
    page->descriptor = -1; /* now the driver's */
    const qi_cu_external_buffer whole = {.size = page->padded};
    code = cuda->f.ExternalMemoryGetMappedBuffer(&page->block, page->external, &whole);
    if (code) {
        page->block = 0;
        return qi_cuda_fail(&cuda->f, code, "cuExternalMemoryGetMappedBuffer of %s",
                            qi_bytes(page->padded).text);
    }
    page->address = page->block;
    return QUIRE_SUCCESS;
}

/* The driver requires that the buffer is freed before its memory. */
bool qi_cuda_external_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->block ? cuda->f.MemFree(page->block) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->block = 0;
    code = page->external ? cuda->f.DestroyExternalMemory(page->external) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->external = NULL;
    qi_cuda_page_close_descriptor(page);
    return true;
}

/* ---- importing ---------------------------------------------------------------------------- */

/* Imports a memfd of another process. Touching a memfd beyond its end kills the process, so a
   descriptor is refused if it is too short, or if its owner can shorten it. */
static quire_result import_shared(qi_cuda *cuda, const quire_page_request *request, int from,
                                  qi_cuda_page *page)
{
    int descriptor = -1;
    if (!cuda->capabilities.host_register)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver registers no host memory");
    if (!qi_memfd_has(from, page->padded))
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "descriptor %d is not a memfd of %s that is sealed against "
                                  "shrinking",
                                  from, qi_bytes(page->padded).text);
    quire_result result = copy_descriptor(from, &descriptor);
    return result ? result : map_shared(cuda, request->alignment, descriptor, page);
}

/* The caller's own handle, or the handle that the driver imports. */
static qi_cu_result get_handle(const qi_cuda *cuda, const quire_cuda_import *import,
                               qi_cu_handle *handle)
{
    qi_cu_fabric_handle fabric;
    *handle = import->handle;
    if (import->type == QUIRE_CUDA_IMPORT_HANDLE)
        return QI_CUDA_SUCCESS;
    if (!cuda->f.MemImportFromShareableHandle)
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (import->type == QUIRE_CUDA_IMPORT_FD)
        return cuda->f.MemImportFromShareableHandle(handle, (void *)(intptr_t)import->descriptor,
                                                    QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    memcpy(fabric.data, import->fabric, sizeof fabric.data);
    return cuda->f.MemImportFromShareableHandle(handle, &fabric, QI_CU_MEM_HANDLE_TYPE_FABRIC);
}

/* Ownership of the caller's handle passes to the page only when everything has succeeded. */
static quire_result import_handle(qi_cuda *cuda, const quire_page_request *request,
                                  qi_cuda_page *page)
{
    const quire_cuda_import *import = request->description;
    bool is_caller_owned = import->type == QUIRE_CUDA_IMPORT_HANDLE;
    qi_cu_handle handle = 0;
    qi_cu_result code = get_handle(cuda, import, &handle);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemImportFromShareableHandle");
    quire_result result =
        qi_cuda_chunk_import(cuda, page->kind, page->padded, handle, &page->chunks);
    if (result) {
        if (!is_caller_owned)
            cuda->f.MemRelease(handle);
        return result;
    }
    page->chunk_count = 1;
    page->chunks->is_caller_owned = is_caller_owned; /* remains if mapping fails */
    result = qi_cuda_virtual_map(cuda, request->alignment, page);
    if (!result)
        page->chunks->is_caller_owned = false;
    return result;
}

/* ---- pointers of the caller --------------------------------------------------------------- */

/* Checks that the range ends in the block of its first byte, and that its last byte is mapped: for
   virtual memory management the driver reports all reserved addresses as the block. */
static quire_result check_extent(const qi_cuda *cuda, const quire_cuda_import *import)
{
    uint64_t start = 0, size = 0;
    uint32_t is_mapped = 1;
    const uint64_t at = import->pointer;
    if (cuda->f.PointerGetAttribute(&start, QI_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) ||
        cuda->f.PointerGetAttribute(&size, QI_CU_POINTER_ATTRIBUTE_RANGE_SIZE, at))
        return QUIRE_SUCCESS; /* the driver does not tell */
    uint64_t left = start + size - at;
    if (import->size > left)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "an import of %s at 0x%llx: the memory there ends after %s",
                                  qi_bytes(import->size).text, (unsigned long long)at,
                                  qi_bytes(left).text);
    const uint64_t last = at + import->size - 1;
    if (!cuda->f.PointerGetAttribute(&is_mapped, QI_CU_POINTER_ATTRIBUTE_MAPPED, last) &&
        !is_mapped)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "an import of %s at 0x%llx: its end is not mapped",
                                  qi_bytes(import->size).text, (unsigned long long)at);
    return QUIRE_SUCCESS;
}

/* Checks what the driver reports about a pointer. */
static quire_result check_pointer(const qi_cuda *cuda, const quire_cuda_import *import)
{
    const uint64_t at = import->pointer;
    uint32_t type = 0;
    int device = cuda->device;
    if (!cuda->f.PointerGetAttribute)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.PointerGetAttribute(&type, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
    if (qi_cuda_is_lost(code))
        return qi_cuda_fail(&cuda->f, code, "cuPointerGetAttribute");
    if (code || type != QI_CU_MEMORYTYPE_DEVICE)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, code,
                                  "0x%llx is not an address of device memory that the driver knows",
                                  (unsigned long long)at);
    code = cuda->f.PointerGetAttribute(&device, QI_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
    if (!code && device >= 0 && device != cuda->device)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "0x%llx is memory of device %d, and '%s' is device %d",
                                  (unsigned long long)at, device, cuda->name, cuda->device);
    return check_extent(cuda, import);
}

/* The memory stays the caller's. */
static quire_result import_pointer(qi_cuda *cuda, const quire_cuda_import *import,
                                   qi_cuda_page *page)
{
    quire_result result = check_pointer(cuda, import);
    if (result)
        return result;
    page->type = QI_CUDA_PAGE_BORROWED;
    page->address = import->pointer;
    return QUIRE_SUCCESS;
}

/* ---- all imports -------------------------------------------------------------------------- */

static quire_result import_external(qi_cuda *cuda, const quire_cuda_import *import,
                                    qi_cuda_page *page)
{
    int descriptor = -1;
    if (!cuda->f.ImportExternalMemory || !cuda->f.ExternalMemoryGetMappedBuffer ||
        !cuda->f.DestroyExternalMemory)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver imports no memory of other APIs");
    quire_result result = copy_descriptor(import->descriptor, &descriptor);
    return result ? result : import_memory(cuda, import, descriptor, page);
}

/* The core passes a description only through quire_page_adopt, whose callers have checked it. */
quire_result qi_cuda_import_page(qi_cuda *cuda, const quire_page_request *request,
                                 qi_cuda_page *page)
{
    const quire_cuda_import *import = request->description;
    page->padded = request->size; /* the caller names whole pages: nothing is rounded */
    if (import->type == QUIRE_CUDA_IMPORT_POINTER)
        return import_pointer(cuda, import, page);
    if (import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD)
        return import_external(cuda, import, page);
    if (import->type == QUIRE_CUDA_IMPORT_IPC)
        return import_ipc(cuda, import, page);
    if (cuda->kinds[page->kind].is_virtual)
        return import_handle(cuda, request, page);
    return import_shared(cuda, request, import->descriptor, page);
}

/* ---- public calls: import ----------------------------------------------------------------- */

static quire_result check_source(const quire_cuda_import *import)
{
    switch (import->type) {
    case QUIRE_CUDA_IMPORT_FD:
    case QUIRE_CUDA_IMPORT_EXTERNAL_FD:
        if (import->descriptor < 0)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a negative descriptor");
        return QUIRE_SUCCESS;
    case QUIRE_CUDA_IMPORT_FABRIC:
        if (!import->fabric)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a null fabric handle");
        return QUIRE_SUCCESS;
    case QUIRE_CUDA_IMPORT_HANDLE:
        if (!import->handle)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of handle 0");
        return QUIRE_SUCCESS;
    case QUIRE_CUDA_IMPORT_POINTER:
        if (!import->pointer)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a null pointer");
        return QUIRE_SUCCESS;
    case QUIRE_CUDA_IMPORT_IPC:
        if (!import->ipc)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a null legacy handle");
        return QUIRE_SUCCESS;
    }
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown import type %u",
                        (uint64_t)import->type);
}

/* Pages of a kind accept only memory of the same nature, in whole granules of the kind. */
static quire_result check_kind(const qi_cuda_kind *kind, const quire_cuda_import *import)
{
    bool is_pool = kind->page_kind == QUIRE_CUDA_TILES;
    bool is_device = kind->description.flags & QUIRE_DEVICE_LOCAL;
    bool is_locked = kind->page_kind == QUIRE_CUDA_PINNED || kind->page_kind == QUIRE_CUDA_COMBINED;
    bool is_imported = import->type == QUIRE_CUDA_IMPORT_POINTER ||
                       import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD ||
                       import->type == QUIRE_CUDA_IMPORT_IPC;
    bool fits = is_imported                            ? is_device
                : import->type == QUIRE_CUDA_IMPORT_FD ? kind->is_virtual || is_locked
                                                       : kind->is_virtual;
    if (!fits || is_pool)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "import type %u cannot make pages of page kind %u",
                            (uint64_t)import->type, (uint64_t)kind->page_kind);
    if (is_imported)
        return QUIRE_SUCCESS;
    uint64_t unit = kind->is_virtual ? kind->granularity : (uint64_t)sysconf(_SC_PAGESIZE);
    if (import->size % unit)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "an import of %u byte%s: the size must be a multiple of %u",
                            import->size, unit);
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_import_range(quire_memory *memory, const quire_cuda_import *import,
                                     quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !import || !allocation)
        return qi_fail_null("quire_cuda_import_range", !memory   ? "memory"
                                                       : !import ? "import"
                                                                 : "allocation");
    quire_memory_info info;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_of_memory(memory, &info, &cuda);
    if (!result)
        result = check_source(import);
    if (!result)
        result = qi_check_unused(import, "quire_cuda_import");
    if (!result && !import->size)
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of size 0");
    if (!result)
        result = check_kind(&cuda->kinds[info.kind], import);
    if (!result && import->type == QUIRE_CUDA_IMPORT_EXTERNAL_FD)
        result = check_uuid(cuda, import->device_uuid);
    if (result)
        return result;
    const quire_allocation_options options = {
        .size = import->size, .name = import->name, .user_data = import->user_data};
    return quire_page_adopt(memory, import, &options, allocation);
}

/* ---- public calls: export ----------------------------------------------------------------- */

/* Finds the page of an allocation. UNSUPPORTED unless it can be exported as `type`. */
static quire_result find_exportable(quire_memory *memory, quire_allocation allocation,
                                    quire_cuda_handle_types type, qi_cuda **cuda,
                                    qi_cuda_page **page)
{
    quire_native native;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, cuda);
    if (result)
        return result;
    *page = qi_cuda_page_of(&native.page);
    if ((*page)->types & type)
        return QUIRE_SUCCESS;
    return qi_fail_with(
        QUIRE_ERROR_UNSUPPORTED,
        "the page cannot be exported as handle type %u: it was created for types %x", type,
        (*page)->types);
}

/* Only pages of one chunk are exportable, so the first chunk is the page. */
static quire_result export_handle(qi_cuda *cuda, const qi_cuda_page *page, void *shared,
                                  quire_cuda_handle_types type)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemExportToShareableHandle(shared, page->chunks->handle, type, 0);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemExportToShareableHandle") : QUIRE_SUCCESS;
}

/* The memfd of a shared page is duplicated; the driver creates every other descriptor. */
quire_result quire_cuda_export_fd(quire_memory *memory, quire_allocation allocation,
                                  int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!memory || !descriptor)
        return qi_fail_null("quire_cuda_export_fd", !memory ? "memory" : "descriptor");
    qi_cuda *cuda = NULL;
    qi_cuda_page *page = NULL;
    quire_result result = find_exportable(memory, allocation, QUIRE_CUDA_FD, &cuda, &page);
    if (result)
        return result;
    if (page->type == QI_CUDA_PAGE_SHARED)
        return copy_descriptor(page->descriptor, descriptor);
    result = export_handle(cuda, page, descriptor, QUIRE_CUDA_FD);
    if (result)
        *descriptor = -1;
    return result;
}

quire_result quire_cuda_export_fabric(quire_memory *memory, quire_allocation allocation,
                                      void *fabric)
{
    if (fabric)
        memset(fabric, 0, QUIRE_CUDA_FABRIC_SIZE);
    if (!memory || !fabric)
        return qi_fail_null("quire_cuda_export_fabric", !memory ? "memory" : "fabric");
    qi_cuda *cuda = NULL;
    qi_cuda_page *page = NULL;
    qi_cu_fabric_handle handle = {.data = {0}};
    quire_result result = find_exportable(memory, allocation, QUIRE_CUDA_FABRIC, &cuda, &page);
    if (!result)
        result = export_handle(cuda, page, &handle, QUIRE_CUDA_FABRIC);
    if (!result)
        memcpy(fabric, handle.data, QUIRE_CUDA_FABRIC_SIZE);
    return result;
}

/* ---- public calls: handles ---------------------------------------------------------------- */

/* The driver answers INVALID_VALUE for addresses that it did not map as virtual memory. */
quire_result quire_cuda_retain_handle(quire_device *device, uint64_t address, uint64_t *handle)
{
    if (handle)
        *handle = 0;
    if (!handle)
        return qi_fail_null("quire_cuda_retain_handle", "handle");
    if (!address)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_retain_handle: the address is 0");
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if (!cuda->capabilities.virtual_memory || !cuda->f.MemRetainAllocationHandle)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver retains no handles");
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemRetainAllocationHandle(handle, (void *)(uintptr_t)address);
    qi_cuda_leave(cuda);
    if (!code)
        return QUIRE_SUCCESS;
    *handle = 0;
    if (code == QI_CUDA_ERROR_INVALID_VALUE)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code,
                                  "nothing at 0x%llx was mapped by virtual memory management",
                                  (unsigned long long)address);
    return qi_cuda_fail(&cuda->f, code, "cuMemRetainAllocationHandle");
}

quire_result quire_cuda_release_handle(quire_device *device, uint64_t handle)
{
    if (!handle)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_release_handle: the handle is 0");
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    if (!cuda->capabilities.virtual_memory)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver has no virtual memory management");
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemRelease(handle);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemRelease") : QUIRE_SUCCESS;
}
