/*
 * kind.c - the memory kinds of a device: those that are wanted and there, with the granularity that
 * the driver tells for exactly the property that their pages are made with.
 *
 * What an attribute promises may still be refused when it is used (in a container, say): then the
 * kind is left out, unless the caller named it.
 */
#include "backends/cuda/cuda.h"
#include "src/base/bits.h"
#include "src/base/result.h"

static const uint64_t PLAIN_GRANULARITY = 64 << 10;

/* ---- granularity -------------------------------------------------------------------------- */

qi_cu_allocation_prop qi_cuda_prop(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                   quire_cuda_handle_types types)
{
    qi_cu_allocation_prop prop = {
        .type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = types,
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device},
    };
    if (kind->page_kind == QUIRE_CUDA_HOST_NUMA)
        prop.location =
            (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = kind->node};
    if (kind->page_kind == QUIRE_CUDA_HOST)
        prop.location = (qi_cu_location){.type = QI_CU_MEM_LOCATION_TYPE_HOST};
    if (cuda->settings.hardware_decompression &&
        prop.location.type == QI_CU_MEM_LOCATION_TYPE_DEVICE)
        prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_HW_DECOMPRESS;
    if (kind->page_kind == QUIRE_CUDA_TILES)
        prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_TILE_POOL;
    if (kind->page_kind == QUIRE_CUDA_COMPRESSED)
        prop.allocFlags.compressionType = QI_CU_MEM_ALLOCATION_COMP_GENERIC;
    if (kind->page_kind == QUIRE_CUDA_REGISTERED)
        prop.allocFlags.gpuDirectRDMACapable = 1;
    return prop;
}

/* Raises *least to the granularity of exactly this property. */
static quire_result raise_granularity(const qi_cuda *cuda, const qi_cu_allocation_prop *prop,
                                      qi_cu_granularity option, uint64_t *least)
{
    size_t size = 0;
    qi_cu_result code = cuda->f.MemGetAllocationGranularity(&size, prop, option);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemGetAllocationGranularity");
    if (!qi_is_power_of_two(size))
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                  "the driver's granularity is %zu bytes, not a power of two",
                                  size);
    qi_raise(least, size);
    return QUIRE_SUCCESS;
}

/* That of memory to be exported, too; a fabric may be refused, and is done without then. */
static quire_result raise_both(const qi_cuda *cuda, const qi_cuda_kind *kind,
                               qi_cu_granularity option, uint64_t *least)
{
    qi_cu_allocation_prop prop = qi_cuda_prop(cuda, kind, 0);
    quire_result result = raise_granularity(cuda, &prop, option, least);
    if (result || !cuda->offers.fd || kind->page_kind == QUIRE_CUDA_HOST ||
        kind->page_kind == QUIRE_CUDA_TILES)
        return result;
    qi_error before = qi_error_save();
    prop.requestedHandleTypes = cuda->settings.export_types;
    result = raise_granularity(cuda, &prop, option, least);
    if (result && prop.requestedHandleTypes & QUIRE_CUDA_FABRIC) {
        qi_error_restore(&before);
        prop.requestedHandleTypes = QUIRE_CUDA_FD;
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

/* Memory that several devices reach is of the coarsest of their granularities. */
static quire_result raise_peers(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                qi_cu_granularity option, uint64_t *least)
{
    quire_result result = QUIRE_SUCCESS;
    qi_cu_allocation_prop prop = qi_cuda_prop(cuda, kind, 0);
    if (prop.location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE ||
        kind->page_kind == QUIRE_CUDA_TILES) /* arrays are mapped for one device */
        return QUIRE_SUCCESS;
    for (uint32_t i = 0; i < cuda->peer_count && !result; i++) {
        prop = (qi_cu_allocation_prop){
            .type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->peers[i]}};
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

static quire_result find_granularity(const qi_cuda *cuda, qi_cuda_kind *kind)
{
    uint64_t least = 1, recommended = 1;
    quire_result result = raise_both(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM, &least);
    if (!result)
        result = raise_peers(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM, &least);
    if (!result)
        result = raise_both(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, &recommended);
    if (!result)
        result = raise_peers(cuda, kind, QI_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, &recommended);
    qi_raise(&recommended, least);
    bool is_coarse =
        cuda->settings.recommended_granularity || kind->page_kind == QUIRE_CUDA_REGISTERED;
    kind->recommended = recommended;
    kind->granularity = is_coarse ? recommended : least;
    return result;
}

/* ---- kinds -------------------------------------------------------------------------------- */

static const char *const names[QUIRE_CUDA_PAGE_KINDS] = {
    "device",   "plain",     "compressed", "registered", "pinned",
    "combined", "host NUMA", "host",       "managed",    "tile pools",
};

static bool is_offered(const qi_cuda_offers *o, quire_cuda_page_kind page_kind)
{
    switch (page_kind) {
    case QUIRE_CUDA_COMPRESSED:
        return o->compression;
    case QUIRE_CUDA_REGISTERED:
        return o->rdma && o->fd;
    case QUIRE_CUDA_HOST_NUMA:
        return o->host_numa;
    case QUIRE_CUDA_HOST:
        return o->host;
    case QUIRE_CUDA_MANAGED:
        return o->managed;
    case QUIRE_CUDA_TILES:
        return o->deferred_arrays || o->sparse_arrays;
    default:
        return true;
    }
}

static const quire_memory_flags CACHED =
    QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED;

static qi_cuda_kind describe_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind, int node)
{
    qi_cuda_kind kind = {.page_kind = page_kind, .node = node, .granularity = PLAIN_GRANULARITY};
    switch (page_kind) {
    case QUIRE_CUDA_DEVICE:
        kind.is_virtual = cuda->offers.virtual_memory;
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_COMPRESSED:
    case QUIRE_CUDA_REGISTERED:
        kind.is_virtual = true;
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_TILES:
        kind.is_virtual = true;
        kind.description.flags = QUIRE_DEVICE_LOCAL | QUIRE_OBJECTS_ONLY;
        break;
    case QUIRE_CUDA_PLAIN:
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_COMBINED:
        kind.description.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT;
        break;
    case QUIRE_CUDA_HOST_NUMA:
    case QUIRE_CUDA_HOST:
        kind.is_virtual = true;
        kind.description.flags = CACHED;
        break;
    case QUIRE_CUDA_PINNED:
    case QUIRE_CUDA_MANAGED:
        kind.description.flags = CACHED;
        break;
    }
    kind.description.heap = kind.description.flags & QUIRE_DEVICE_LOCAL ? 0 : 1;
    return kind;
}

/* Tile pools have no addresses, and pages for registration are one handle, exportable. */
bool qi_cuda_kind_grows(const qi_cuda_kind *kind)
{
    return kind->is_virtual && kind->page_kind != QUIRE_CUDA_TILES &&
           kind->page_kind != QUIRE_CUDA_REGISTERED;
}

/* What may be refused though an attribute promised it. */
static bool is_refusal(quire_result result)
{
    return result == QUIRE_ERROR_UNSUPPORTED || result == QUIRE_ERROR_NOT_PERMITTED ||
           result == QUIRE_ERROR_INVALID_ARGUMENT;
}

static quire_result add_kind(qi_cuda *cuda, quire_cuda_page_kind page_kind, int node, bool is_named)
{
    if (cuda->kind_count == QUIRE_MAX_KINDS)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED, "more than %u memory kinds", QUIRE_MAX_KINDS);
    qi_cuda_kind kind = describe_kind(cuda, page_kind, node);
    qi_error before = qi_error_save();
    quire_result result = kind.is_virtual ? find_granularity(cuda, &kind) : QUIRE_SUCCESS;
    if (is_refusal(result) && page_kind == QUIRE_CUDA_DEVICE) {
        qi_error_restore(&before);
        cuda->offers.virtual_memory = false; /* what is left is cuMemAlloc */
        qi_cuda_match_functions(cuda, &cuda->offers);
        kind = describe_kind(cuda, page_kind, node);
    } else if (is_refusal(result) && !is_named) {
        qi_error_restore(&before);
        return QUIRE_SUCCESS;
    } else if (result) {
        return result;
    }
    if (cuda->settings.hardware_decompression && page_kind == QUIRE_CUDA_DEVICE && !kind.is_virtual)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "'%s' has no virtual memory management, and so no pages that hardware "
                            "decompresses into",
                            cuda->name);
    if (!kind.is_virtual && kind.description.flags & QUIRE_DEVICE_LOCAL)
        cuda->page_alignment = QI_CUDA_ALIGNMENT; /* more would cost device memory */
    cuda->kinds[cuda->kind_count++] = kind;
    return QUIRE_SUCCESS;
}

/* One kind for each host node that is wanted. */
static quire_result add_nodes(qi_cuda *cuda, bool is_named)
{
    uint64_t nodes = cuda->settings.numa_nodes;
    int nearest = cuda->offers.numa_node;
    quire_result result = QUIRE_SUCCESS;
    if (!nodes)
        return add_kind(cuda, QUIRE_CUDA_HOST_NUMA, nearest < 0 ? 0 : nearest, is_named);
    for (; nodes && !result; nodes &= nodes - 1)
        result = add_kind(cuda, QUIRE_CUDA_HOST_NUMA, (int)qi_lowest_bit(nodes), true);
    return result;
}

quire_result qi_cuda_add_kinds(qi_cuda *cuda)
{
    const uint32_t usual =
        QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_DEVICE) | QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_PINNED) |
        QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_COMBINED) | QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_HOST_NUMA);
    uint32_t named = cuda->settings.kinds, wanted = named ? named : usual;
    quire_result result = QUIRE_SUCCESS;
    for (int i = 0; i < QUIRE_CUDA_PAGE_KINDS && !result; i++) {
        quire_cuda_page_kind page_kind = (quire_cuda_page_kind)i;
        bool is_named = named || (page_kind == QUIRE_CUDA_HOST_NUMA && cuda->settings.numa_nodes);
        if (!(wanted >> i & 1))
            continue;
        if (!is_offered(&cuda->offers, page_kind)) {
            if (is_named)
                return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no pages of kind %s",
                                    cuda->name, names[i]);
            continue;
        }
        result = page_kind == QUIRE_CUDA_HOST_NUMA ? add_nodes(cuda, is_named)
                                                   : add_kind(cuda, page_kind, -1, is_named);
    }
    return result;
}
