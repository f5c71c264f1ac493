/*
 * kind.c - the memory kinds of a device: those that the settings request and the device offers. The
 * driver reports the granularity for exactly the properties that the pages of the kind have.
 */
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "src/base/bits.h"
#include "src/base/result.h"

static const uint64_t PLAIN_GRANULARITY = 64 << 10;

/* ---- granularity ------------------------------------------------------------------------ */

qi_cu_allocation_prop qi_cuda_allocation_prop(const qi_cuda *cuda, const qi_cuda_kind *kind,
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
    prop.allocFlags.gpuDirectRDMACapable = kind->is_rdma;
    return prop;
}

/* Raises *least to the granularity of exactly these properties. */
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

/* Covers exportable memory as well. The driver may refuse the fabric handle; pages are then created
   without it, so its granularity does not count. */
static quire_result raise_both(const qi_cuda *cuda, const qi_cuda_kind *kind,
                               qi_cu_granularity option, uint64_t *least)
{
    qi_cu_allocation_prop prop = qi_cuda_allocation_prop(cuda, kind, 0);
    quire_result result = raise_granularity(cuda, &prop, option, least);
    if (result || !cuda->capabilities.fd || kind->page_kind == QUIRE_CUDA_HOST ||
        kind->page_kind == QUIRE_CUDA_TILES)
        return result;
    qi_error before;
    qi_error_save(&before);
    prop.requestedHandleTypes = cuda->settings.export_types;
    result = raise_granularity(cuda, &prop, option, least);
    if (result && prop.requestedHandleTypes & QUIRE_CUDA_FABRIC) {
        qi_error_restore(&before);
        prop.requestedHandleTypes = QUIRE_CUDA_FD;
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

/* Memory that several devices access has the coarsest of their granularities. */
static quire_result raise_peers(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                qi_cu_granularity option, uint64_t *least)
{
    quire_result result = QUIRE_SUCCESS;
    qi_cu_allocation_prop prop = qi_cuda_allocation_prop(cuda, kind, 0);
    if (prop.location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE ||
        kind->page_kind == QUIRE_CUDA_TILES) /* arrays are mapped for one device only */
        return QUIRE_SUCCESS;
    for (uint32_t i = 0; i < cuda->peer_count && !result; i++) {
        prop = (qi_cu_allocation_prop){
            .type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->peers[i]}};
        result = raise_granularity(cuda, &prop, option, least);
    }
    return result;
}

/* Memory for registration always uses the recommended granularity. */
quire_result qi_cuda_find_granularity(const qi_cuda *cuda, qi_cuda_kind *kind)
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

/* ---- kinds ------------------------------------------------------------------------------ */

const char *const qi_cuda_kind_names[QUIRE_CUDA_PAGE_KINDS] = {
    "device",    "plain", "compressed", "registered", "pinned", "combined",
    "host NUMA", "host",  "managed",    "tile pools", "pool",
};

static bool is_offered(const qi_cuda_capabilities *o, quire_cuda_page_kind page_kind)
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
    case QUIRE_CUDA_POOL:
        return o->pools;
    case QUIRE_CUDA_TILES:
        return o->deferred_mapping_arrays || o->sparse_arrays;
    default:
        return true;
    }
}

static const quire_memory_flags CACHED =
    QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED;

/* A kind before its granularity is known. Kinds without virtual memory keep PLAIN_GRANULARITY. */
static qi_cuda_kind describe_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind, int node)
{
    qi_cuda_kind kind = {.page_kind = page_kind, .node = node, .granularity = PLAIN_GRANULARITY};
    switch (page_kind) {
    case QUIRE_CUDA_DEVICE:
        kind.is_virtual = cuda->capabilities.virtual_memory &&
                          !(cuda->settings.without & QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY);
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_COMPRESSED:
    case QUIRE_CUDA_REGISTERED:
        kind.is_virtual = true;
        kind.is_rdma = page_kind == QUIRE_CUDA_REGISTERED;
        kind.description.flags = QUIRE_DEVICE_LOCAL;
        break;
    case QUIRE_CUDA_TILES:
        kind.is_virtual = true;
        kind.description.flags = QUIRE_DEVICE_LOCAL | QUIRE_OBJECTS_ONLY;
        break;
    case QUIRE_CUDA_PLAIN:
    case QUIRE_CUDA_POOL:
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

/* Tile pools have no addresses. Pages for registration are one chunk, which keeps its size. */
bool qi_cuda_kind_is_elastic(const qi_cuda_kind *kind)
{
    return kind->is_virtual && kind->page_kind != QUIRE_CUDA_TILES &&
           kind->page_kind != QUIRE_CUDA_REGISTERED;
}

/* Returns true for a result by which a driver refuses what an attribute promises, as in a
   container. */
static bool is_refusal(quire_result result)
{
    return result == QUIRE_ERROR_UNSUPPORTED || result == QUIRE_ERROR_NOT_PERMITTED ||
           result == QUIRE_ERROR_INVALID_ARGUMENT;
}

/* Adds one kind. A refused device kind falls back to cuMemAlloc. */
static quire_result add_kind(qi_cuda *cuda, quire_cuda_page_kind page_kind, int node)
{
    if (cuda->kind_count == QUIRE_MAX_KINDS)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED, "more than %u memory kinds", QUIRE_MAX_KINDS);
    qi_cuda_kind kind = describe_kind(cuda, page_kind, node);
    qi_error before;
    qi_error_save(&before);
    quire_result result = kind.is_virtual ? qi_cuda_find_granularity(cuda, &kind) : QUIRE_SUCCESS;
    if (is_refusal(result) && page_kind == QUIRE_CUDA_DEVICE) {
        qi_error_restore(&before);
        cuda->capabilities.virtual_memory = false; /* cuMemAlloc remains */
        qi_cuda_match_functions(cuda, &cuda->capabilities);
        kind = describe_kind(cuda, page_kind, node);
    } else if (result) {
        return result;
    }
    if (cuda->settings.hardware_decompression && page_kind == QUIRE_CUDA_DEVICE && !kind.is_virtual)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "device pages of '%s' are not of virtual memory management, which "
                            "hardware decompression requires",
                            cuda->name);
    if (!kind.is_virtual && kind.description.flags & QUIRE_DEVICE_LOCAL)
        cuda->page_alignment = QI_CUDA_ALIGNMENT; /* aligning further would waste device memory */
    cuda->kinds[cuda->kind_count++] = kind;
    return QUIRE_SUCCESS;
}

bool qi_cuda_has_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind)
{
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (cuda->kinds[i].page_kind == page_kind)
            return true;
    return false;
}

/* Adds one kind for each host node of the settings, or for the nearest node if they name none. */
static quire_result add_nodes(qi_cuda *cuda)
{
    uint64_t nodes = cuda->settings.numa_nodes;
    int nearest = cuda->capabilities.numa_node;
    quire_result result = QUIRE_SUCCESS;
    if (!nodes)
        return add_kind(cuda, QUIRE_CUDA_HOST_NUMA, nearest < 0 ? 0 : nearest);
    for (; nodes && !result; nodes &= nodes - 1)
        result = add_kind(cuda, QUIRE_CUDA_HOST_NUMA, (int)qi_lowest_bit(nodes));
    return result;
}

/* The kinds that the settings name, or else those that the variable allows, or else the usual ones.
   Memory of host nodes is not usual: no intent selects it, and some drivers crash at it. */
static uint32_t wanted_kinds(const qi_cuda *cuda)
{
    const quire_cuda_settings *s = &cuda->settings;
    uint32_t usual = QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_DEVICE) |
                     QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_PINNED) |
                     QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_COMBINED);
    if (s->kinds)
        return s->kinds;
    return (cuda->allowed_kinds ? cuda->allowed_kinds : usual) |
           (s->numa_nodes ? QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_HOST_NUMA) : 0);
}

static quire_result check_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind)
{
    if (cuda->allowed_kinds && !(cuda->allowed_kinds & QUIRE_CUDA_KIND_BIT(page_kind)))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "the variable QUIRE_CUDA_KINDS leaves out pages of kind %s",
                            qi_cuda_kind_names[page_kind]);
    return is_offered(&cuda->capabilities, page_kind)
               ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no pages of kind %s", cuda->name,
                              qi_cuda_kind_names[page_kind]);
}

quire_result qi_cuda_add_kinds(qi_cuda *cuda)
{
    uint32_t wanted = wanted_kinds(cuda);
    quire_result result = QUIRE_SUCCESS;
    for (int i = 0; i < QUIRE_CUDA_PAGE_KINDS && !result; i++) {
        quire_cuda_page_kind page_kind = (quire_cuda_page_kind)i;
        if (!(wanted >> i & 1))
            continue;
        result = check_kind(cuda, page_kind);
        if (!result)
            result =
                page_kind == QUIRE_CUDA_HOST_NUMA ? add_nodes(cuda) : add_kind(cuda, page_kind, -1);
    }
    return result;
}

/* ---- page sizes ------------------------------------------------------------------------- */

uint64_t qi_cuda_host_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 40;
}

/*
 * Compares with the heap first: some drivers accept requests for host memory that does not exist.
 */
quire_result qi_cuda_round_size(const qi_cuda *cuda, uint32_t kind, uint64_t size, uint64_t *padded)
{
    const qi_cuda_kind *of = &cuda->kinds[kind];
    uint64_t max = of->description.heap ? qi_cuda_host_bytes() : cuda->device_bytes;
    if (size > max || qi_align_up_overflows(size, of->granularity, padded))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "%s requested: the heap of memory kind %u has %s in total",
                                  qi_bytes(size).text, kind, qi_bytes(max).text);
    return QUIRE_SUCCESS;
}
