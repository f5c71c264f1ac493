/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * open.c - opens a device in this order: settings, driver, device, context, what the device has. An
 * attribute may promise what the driver refuses in use, so a trial page decides about such memory
 * kinds.
 */
#include "backends/cuda/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/device.h"
#include "backends/cuda/page.h"
#include "backends/cuda/pool.h"
#include "backends/cuda/virtual.h"
#include "src/base/log.h"
#include "src/base/result.h"
#include "src/base/text.h"

static const char *const KINDS_VARIABLE = "QUIRE_CUDA_KINDS";
static const char *const PAGES_VARIABLE = "QUIRE_CUDA_PAGES";
static const char *const PEERS_VARIABLE = "QUIRE_CUDA_PEERS";

enum { ALL_KINDS = (1 << QUIRE_CUDA_PAGE_KINDS) - 1 };

/* ---- settings of the program -------------------------------------------------------------- */

static quire_result check_peer_list(const quire_cuda_settings *s)
{
    if (s->peer_count > QI_CUDA_MAX_PEERS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "%u peer%s: %u at most", s->peer_count,
                            QI_CUDA_MAX_PEERS);
    if (s->peer_count && !s->peers)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "peer_count is set and peers is null");
    if (s->peer_count && s->reachable_peers)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "peers and reachable_peers are set");
    for (uint32_t i = 0; i < s->peer_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (s->peers[i] == s->peers[j])
                return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "peer %d is named twice",
                                    s->peers[i]);
    return QUIRE_SUCCESS;
}

/* INVALID_ARGUMENT if the settings contradict themselves. */
static quire_result check_settings(const quire_cuda_settings *s)
{
    const uint32_t without =
        QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY | QUIRE_CUDA_WITHOUT_RDMA | QUIRE_CUDA_WITHOUT_EXPORT;
    if (s->kinds & ~(uint32_t)ALL_KINDS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown page kinds %x",
                            s->kinds & ~(uint32_t)ALL_KINDS);
    if (s->export_types & ~(QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown handle types %x",
                            s->export_types);
    if (s->without & ~without)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown bits %x of without",
                            s->without & ~without);
    if (s->numa_nodes && s->kinds && !(s->kinds & QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_HOST_NUMA)))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "numa_nodes is set and kinds lacks host NUMA pages");
    quire_result result = check_peer_list(s);
    if (!result)
        result = qi_cuda_check_pool_options(s);
    return result ? result : qi_check_unused(s, "quire_cuda_settings");
}

/* ---- variables of the program's user ------------------------------------------------------ */

/* A part of a variable between commas. */
typedef struct word {
    const char *text;
    size_t length;
} word;

/* Returns false at the end. Empty words are passed over. */
static bool next_word(const char **rest, word *next)
{
    *rest += strspn(*rest, ", ");
    *next = (word){*rest, strcspn(*rest, ", ")};
    *rest += next->length;
    return next->length > 0;
}

static char plain(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '-' || c == '_' ? ' ' : c;
}

/* "host-numa" is "host NUMA". */
static bool is_name(const word *w, const char *name)
{
    size_t i = 0;
    while (i < w->length && plain(w->text[i]) == plain(name[i]))
        i++;
    return i == w->length && !name[i];
}

static quire_result refuse_word(const char *variable, const word *w)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "the variable %s has '%.*s'", variable,
                        w->length > 64 ? 64 : (int)w->length, w->text);
}

/* One bit for each word of a variable, by its place among the names; 0: the variable is not set. */
static quire_result read_bits(const char *variable, const char *const *names, uint32_t count,
                              uint32_t *bits)
{
    const char *rest = getenv(variable);
    word next;
    *bits = 0;
    while (rest && next_word(&rest, &next)) {
        uint32_t i = 0;
        while (i < count && !is_name(&next, names[i]))
            i++;
        if (i == count)
            return refuse_word(variable, &next);
        *bits |= UINT32_C(1) << i;
    }
    return QUIRE_SUCCESS;
}

/* One bit for each ordinal; all: the variable is not set. */
static quire_result read_peers(uint64_t *peers)
{
    const char *rest = getenv(PEERS_VARIABLE);
    word next;
    bool is_set = rest && next_word(&rest, &next);
    *peers = is_set ? 0 : UINT64_MAX;
    if (is_set && is_name(&next, "none"))
        return next_word(&rest, &next) ? refuse_word(PEERS_VARIABLE, &next) : QUIRE_SUCCESS;
    while (is_set) {
        unsigned long ordinal = strtoul(next.text, NULL, 10);
        if (strspn(next.text, "0123456789") < next.length || ordinal > 63)
            return refuse_word(PEERS_VARIABLE, &next);
        *peers |= UINT64_C(1) << ordinal;
        is_set = next_word(&rest, &next);
    }
    return QUIRE_SUCCESS;
}

/* Applies the variables QUIRE_CUDA_KINDS, QUIRE_CUDA_PAGES and QUIRE_CUDA_PEERS of the environment.
   INVALID_ARGUMENT names a word that is unknown. */
static quire_result read_variables(qi_cuda *cuda)
{
    /* in the order of the bits of quire_cuda_without */
    static const char *const without[] = {"plain", "no-rdma", "no-export"};
    uint32_t bits;
    quire_result result =
        read_bits(KINDS_VARIABLE, qi_cuda_kind_names, QUIRE_CUDA_PAGE_KINDS, &cuda->allowed_kinds);
    if (!result)
        result = read_bits(PAGES_VARIABLE, without, sizeof without / sizeof *without, &bits);
    if (!result)
        result = read_peers(&cuda->allowed_peers);
    if (!result)
        cuda->settings.without |= bits;
    return result;
}

/* ---- resolved settings -------------------------------------------------------------------- */

/* What the settings point to is valid until the call returns only, and is copied. */
static void copy_settings(qi_cuda *cuda, const quire_cuda_settings *requested)
{
    cuda->settings = *requested;
    cuda->settings.peers = NULL;
    cuda->settings.pool = NULL;
    if (requested->pool)
        cuda->pool.options = *requested->pool;
    cuda->peer_count = requested->peer_count;
    for (uint32_t i = 0; i < requested->peer_count; i++)
        cuda->peers[i] = requested->peers[i];
    if (!cuda->settings.export_types)
        cuda->settings.export_types = QUIRE_CUDA_FD;
    cuda->log = requested->device.log;
}

/* ---- the driver --------------------------------------------------------------------------- */

/* 11.2: the first driver with everything that the backend requires. */
enum { MIN_DRIVER = 11020 };

static quire_result start_driver(qi_cuda *cuda, const char *library)
{
    quire_result result = read_variables(cuda);
    if (!result)
        result = qi_cuda_open_library(library, &cuda->library);
    if (!result)
        result = qi_cuda_load(&cuda->f, cuda->library);
    if (result)
        return result;
    qi_cu_result code = cuda->f.Init(0);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuInit");
    code = cuda->f.DriverGetVersion(&cuda->driver_version);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDriverGetVersion");
    if (cuda->driver_version < MIN_DRIVER)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "the CUDA driver has version %d.%d: 11.2 is the minimum",
                            cuda->driver_version / 1000, cuda->driver_version % 1000 / 10);
    return QUIRE_SUCCESS;
}

/* ---- which device ------------------------------------------------------------------------- */

static const char *const DEVICE_VARIABLE = "QUIRE_CUDA_DEVICE";

enum { MAX_LISTED = 512 };

/* The devices of the machine, for the message of a refusal. */
typedef struct listing {
    char text[MAX_LISTED];
    size_t length;
} listing;

/* The text is cut off where the buffer is full. */
static void list(listing *l, int ordinal, const char *name)
{
    if (l->length >= sizeof l->text)
        return;
    int more = snprintf(l->text + l->length, sizeof l->text - l->length, "%s%d '%s'",
                        l->length ? ", " : "", ordinal, name);
    l->length += more > 0 ? (size_t)more : 0;
}

/* Sets cuda->device. */
static quire_result query_device_name(qi_cuda *cuda, int ordinal, char *name, size_t size)
{
    qi_cu_result code = cuda->f.DeviceGet(&cuda->device, ordinal);
    if (!code)
        code = cuda->f.DeviceGetName(name, (int)size, cuda->device);
    return code ? qi_cuda_fail(&cuda->f, code, "querying device %d", ordinal) : QUIRE_SUCCESS;
}

/* Selects the first device that matches the options, or the environment variable, or any. */
static quire_result select_device(qi_cuda *cuda, const char *requested)
{
    const char *wanted = requested ? requested : getenv(DEVICE_VARIABLE);
    listing there = {.text = "none"};
    int count = 0;
    qi_cu_result code = cuda->f.DeviceGetCount(&count);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetCount");
    for (int i = 0; i < count; i++) {
        char name[sizeof cuda->name] = "";
        quire_result result = query_device_name(cuda, i, name, sizeof name);
        if (result)
            return result;
        if (qi_is_wanted(wanted, (uint32_t)i, name))
            return QUIRE_SUCCESS;
        list(&there, i, name);
    }
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "no CUDA device matches '%s'; available: %s",
                        wanted ? wanted : "", there.text);
}

/* ---- the state ---------------------------------------------------------------------------- */

/* Validates the settings before it allocates. On failure nothing is left. */
static quire_result create_state(const quire_cuda_settings *settings, qi_cuda **out)
{
    qi_host host;
    quire_result result = check_settings(settings);
    if (!result)
        result = qi_host_init(&host, settings->device.host_memory);
    if (result)
        return result;
    qi_cuda *cuda = qi_host_allocate(&host, 1, sizeof *cuda);
    if (!cuda)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a CUDA device");
    cuda->host = host;
    if (pthread_mutex_init(&cuda->mutex, NULL)) {
        qi_host_release(&host, cuda, 1, sizeof *cuda);
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no mutex for a CUDA device");
    }
    copy_settings(cuda, settings);
    *out = cuda;
    return QUIRE_SUCCESS;
}

void qi_cuda_release_state(qi_cuda *cuda)
{
    if (cuda->is_primary && !qi_cuda_has_forked(cuda))
        cuda->f.DevicePrimaryCtxRelease(cuda->device);
    qi_cuda_close_library(cuda->library);
    pthread_mutex_destroy(&cuda->mutex);
    qi_host host = cuda->host;
    qi_host_release(&host, cuda, 1, sizeof *cuda);
}

static quire_result retain_primary(qi_cuda *cuda)
{
    qi_cu_result code = cuda->f.DevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDevicePrimaryCtxRetain of device %d", cuda->device);
    cuda->is_primary = true;
    return QUIRE_SUCCESS;
}

/* Finds the device of the caller's context. Fails if the context cannot be made current. */
static quire_result find_device(qi_cuda *cuda, void *context)
{
    cuda->context = context;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.CtxGetDevice(&cuda->device);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuCtxGetDevice") : QUIRE_SUCCESS;
}

/* ---- opening ------------------------------------------------------------------------------ */

quire_result qi_cuda_open_primary(const quire_cuda_options *options, qi_cuda **out)
{
    qi_cuda *cuda = NULL;
    quire_result result = create_state(&options->settings, &cuda);
    if (result)
        return result;
    result = start_driver(cuda, options->library);
    if (!result)
        result = select_device(cuda, options->device);
    if (!result)
        result = retain_primary(cuda);
    if (result)
        qi_cuda_release_state(cuda);
    else
        *out = cuda;
    return result;
}

quire_result qi_cuda_open_context(const quire_cuda_wrap_options *options, qi_cuda **out)
{
    qi_cuda *cuda = NULL;
    quire_result result = create_state(&options->settings, &cuda);
    if (result)
        return result;
    result = start_driver(cuda, options->library);
    if (!result)
        result = find_device(cuda, options->context);
    if (result)
        qi_cuda_release_state(cuda);
    else
        *out = cuda;
    return result;
}

/* ---- trial allocations -------------------------------------------------------------------- */

/*
 * An attribute may promise what the driver refuses in use:
 *
 * - Memory of host nodes fails at some nodes, and at all nodes in containers without get_mempolicy.
 *
 * - On WSL2 memory that is capable of GPUDirect RDMA is created and mapped, and then cuMemSetAccess
 * fails.
 *
 * A trial therefore creates a page, maps it, sets its access, and releases it.
 */

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

/* ---- trials of host nodes ----------------------------------------------------------------- */

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

/* ---- trials of device memory -------------------------------------------------------------- */

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

/*
 * Creates a page of the smallest size of each kind that may exist as an attribute only, and
 * releases it. A host node at which the driver creates none is UNSUPPORTED. Device pages get
 * GPUDirect RDMA and descriptors if the driver grants these. In the context.
 */
static quire_result try_kinds(qi_cuda *cuda)
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

/* ---- what the device has ------------------------------------------------------------------ */

static qi_cu_result can_reach(const qi_cuda *cuda, int peer, int *can)
{
    *can = 0;
    return cuda->f.DeviceCanAccessPeer ? cuda->f.DeviceCanAccessPeer(can, peer, cuda->device)
                                       : QI_CUDA_ERROR_NOT_SUPPORTED;
}

/* The peers must be able to access this device. The message names the one that cannot. */
static quire_result check_peers(const qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->peer_count; i++) {
        int can;
        if (cuda->peers[i] == cuda->device)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "device %u is its own peer",
                                (uint64_t)cuda->device);
        qi_cu_result code = can_reach(cuda, cuda->peers[i], &can);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuDeviceCanAccessPeer of device %d",
                                cuda->peers[i]);
        if (!can)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device %d cannot reach device %d",
                                cuda->peers[i], cuda->device);
    }
    return QUIRE_SUCCESS;
}

/* Makes all other devices peers that the user's variable allows. If one of them cannot be, there
   are none, and device pages do without virtual memory management. */
static quire_result find_peers(qi_cuda *cuda)
{
    int count = 0, can;
    qi_cu_result code = cuda->f.DeviceGetCount(&count);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetCount");
    for (int i = 0; i < count; i++) {
        if (i == cuda->device || (i < 64 && !(cuda->allowed_peers >> i & 1)))
            continue;
        if (cuda->peer_count == QI_CUDA_MAX_PEERS || can_reach(cuda, i, &can) || !can) {
            cuda->peer_count = 0;
            cuda->settings.without |= QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY;
            qi_log(&cuda->log, QUIRE_LOG_INFO,
                   "device %d cannot reach device '%s': its pages are plain", i, cuda->name);
            return QUIRE_SUCCESS;
        }
        cuda->peers[cuda->peer_count++] = i;
    }
    return QUIRE_SUCCESS;
}

static bool has_settable_access(const qi_cuda *cuda, const qi_cuda_kind *kind)
{
    if (kind->page_kind == QUIRE_CUDA_POOL)
        return cuda->pool.options.source == QUIRE_CUDA_POOL_OWN;
    return kind->is_virtual && kind->page_kind != QUIRE_CUDA_TILES;
}

/* Peers need virtual memory management or a pool of quire: access to other pages is not set. */
static quire_result check_virtual(qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (has_settable_access(cuda, &cuda->kinds[i]))
            return QUIRE_SUCCESS;
    if (cuda->settings.reachable_peers)
        cuda->peer_count = 0;
    return cuda->peer_count
               ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "peers are named, and '%s' has no pages of virtual memory management",
                              cuda->name)
               : QUIRE_SUCCESS;
}

static quire_result check_export(const qi_cuda *cuda)
{
    if (cuda->settings.export_types == QUIRE_CUDA_FABRIC && !cuda->capabilities.fabric)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no fabric handles", cuda->name);
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_probe(qi_cuda *cuda)
{
    size_t bytes = 0;
    qi_cu_result code = cuda->f.DeviceTotalMem(&bytes, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceTotalMem");
    cuda->device_bytes = bytes;
    code = cuda->f.DeviceGetName(cuda->name, sizeof cuda->name, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetName");
    qi_cu_uuid uuid;
    if (cuda->f.DeviceGetUuid && !cuda->f.DeviceGetUuid(&uuid, cuda->device))
        memcpy(cuda->uuid, uuid.bytes, sizeof cuda->uuid);
    quire_result result = qi_cuda_query_capabilities(cuda, &cuda->capabilities);
    if (result)
        return result;
    qi_cuda_match_functions(cuda, &cuda->capabilities);
    qi_atomic_init_u32(&cuda->fabric, cuda->capabilities.fabric ? QUIRE_CUDA_FABRIC_UNTRIED
                                                                : QUIRE_CUDA_FABRIC_ABSENT);
    result = check_export(cuda);
    if (!result)
        result = cuda->settings.reachable_peers ? find_peers(cuda) : check_peers(cuda);
    if (!result)
        result = qi_cuda_add_kinds(cuda);
    if (!result)
        result = try_kinds(cuda);
    return result ? result : check_virtual(cuda);
}
