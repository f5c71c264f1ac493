/*
 * trial.c - trial allocations when a device is opened, because an attribute may promise what the
 * driver refuses in use:
 *
 * - Memory of host nodes fails at some nodes, and at all nodes in containers without get_mempolicy.
 * - On WSL2 memory that is capable of GPUDirect RDMA is created and mapped, and then cuMemSetAccess
 *   fails.
 *
 * A trial therefore creates a page, maps it, sets its access, and releases it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/page.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- nodes of the system ---------------------------------------------------------------- */

static const char *const NODES = "/sys/devices/system/node";

/* Returns true if a list such as "0-3,8" contains the number. */
static bool contains(const char *list, unsigned long number)
{
    for (char *end = NULL;; list = end + 1) {
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (end == list)
            return false;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (number >= first && number <= last)
            return true;
        if (*end != ',')
            return false;
    }
}

/* Reads a list of nodes. Returns false if the system has none. */
static bool read_list(const char *folder, const char *name, char *text, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_read = fgets(text, (int)size, file) != NULL;
    fclose(file);
    return is_read;
}

bool qi_cuda_lacks_memory(const char *folder, int node)
{
    char online[512], with_memory[512];
    return read_list(folder, "online", online, sizeof online) &&
           read_list(folder, "has_memory", with_memory, sizeof with_memory) &&
           contains(online, (unsigned long)node) && !contains(with_memory, (unsigned long)node);
}

/* ---- one trial -------------------------------------------------------------------------- */

/* Creates a page of the smallest size and releases it. What the driver does not release is retried
   with the deferred pages. */
static quire_result try_page(qi_cuda *cuda, uint32_t kind)
{
    uint64_t size = cuda->kinds[kind].granularity;
    const quire_page_request request = {.kind = kind, .size = size, .alignment = QI_CUDA_ALIGNMENT};
    qi_cuda_page *page = qi_host_allocate(&cuda->host, 1, sizeof *page);
    if (!page)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a page record");
    page->kind = kind;
    page->requested = page->padded = size;
    page->descriptor = -1;
    quire_result result = qi_cuda_virtual_create(cuda, &request, page);
    for (qi_cuda_chunk *chunk = page->chunks; chunk; chunk = chunk->next)
        chunk->is_never_kept = true;
    qi_cuda_page_discard(cuda, page);
    return result;
}

/* Returns true if the device may be opened in spite of a failed trial. */
static bool is_refused(quire_result result)
{
    return result && result != QUIRE_ERROR_DEVICE_LOST && result != QUIRE_ERROR_OUT_OF_HOST_MEMORY;
}

/* ---- host nodes ------------------------------------------------------------------------- */

/* UNSUPPORTED if the driver creates no memory at the node of a kind. */
static quire_result try_node(qi_cuda *cuda, uint32_t kind)
{
    int node = cuda->kinds[kind].node;
    if (qi_cuda_lacks_memory(NODES, node)) /* some drivers crash there */
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "host node %d has no memory", node);
    quire_result result = try_page(cuda, kind);
    if (!is_refused(result))
        return result;
    return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, quire_last_native_code(),
                              "'%s' cannot use memory of host node %d: %s", cuda->name, node,
                              quire_last_error());
}

/* ---- device memory ---------------------------------------------------------------------- */

/* What device pages can have beyond being pages. */
typedef struct extras {
    bool is_rdma;
    quire_cuda_handle_types types;
} extras;

/* Requests the extras for all pages of the kind, if a page can be created with them. */
static quire_result try_extras(qi_cuda *cuda, uint32_t index, const extras *tried)
{
    qi_cuda_kind *kind = &cuda->kinds[index];
    const qi_cuda_kind plain = *kind;
    kind->is_rdma = tried->is_rdma;
    kind->types = tried->types;
    quire_result result = qi_cuda_find_granularity(cuda, kind);
    if (!result)
        result = try_page(cuda, index);
    if (!result)
        return QUIRE_SUCCESS;
    *kind = plain;
    return result;
}

static void warn(const qi_cuda *cuda, const qi_cuda_kind *kind, const extras *wanted)
{
    bool no_rdma = wanted->is_rdma && !kind->is_rdma, no_types = wanted->types && !kind->types;
    qi_log(&cuda->log, QUIRE_LOG_WARNING, "device '%s': pages are not %s%s%s: %s", cuda->name,
           no_rdma ? "capable of GPUDirect RDMA" : "", no_rdma && no_types ? " nor " : "",
           no_types ? "exportable as descriptors" : "", quire_last_error());
}

/* Tries all extras, then each alone. A device without free memory tells nothing: its pages get
   none. */
static quire_result try_device(qi_cuda *cuda, uint32_t index)
{
    const quire_cuda_without without = cuda->settings.without;
    const bool has_types = cuda->capabilities.fd && !(without & QUIRE_CUDA_WITHOUT_EXPORT);
    const extras wanted = {
        .is_rdma = cuda->capabilities.rdma && !(without & QUIRE_CUDA_WITHOUT_RDMA),
        .types = has_types ? cuda->settings.export_types & QUIRE_CUDA_FD : 0,
    };
    const extras tries[] = {wanted, {.types = wanted.types}, {.is_rdma = wanted.is_rdma}};
    const int count = wanted.is_rdma && wanted.types ? 3 : wanted.is_rdma || wanted.types ? 1 : 0;
    quire_result result = QUIRE_SUCCESS;
    qi_error before;
    qi_error_save(&before);
    bool has_failed = false;
    for (int i = 0; i < count; i++) {
        result = try_extras(cuda, index, &tries[i]);
        if (result && !is_refused(result))
            return result;
        has_failed |= result != QUIRE_SUCCESS;
        if (!result || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY)
            break;
    }
    if (has_failed)
        warn(cuda, &cuda->kinds[index], &wanted);
    qi_error_restore(&before);
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_try_kinds(qi_cuda *cuda)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < cuda->kind_count && !result; i++) {
        const qi_cuda_kind *kind = &cuda->kinds[i];
        if (kind->page_kind == QUIRE_CUDA_DEVICE && kind->is_virtual)
            result = try_device(cuda, i);
        else if (kind->page_kind == QUIRE_CUDA_HOST_NUMA)
            result = try_node(cuda, i);
    }
    return result;
}
