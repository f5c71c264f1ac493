/*
 * page.c - pages: memory of the device, pinned memory of the host, and unified memory, as the
 * plugin allocates it. Each is given back with exactly the size it was taken with.
 */
#include "backends/plugin/plugin.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the plugin's functions by role --------------------------------------------------------- */

typedef qi_pd_status (*allocate)(qi_pd_device *, void **, size_t);
typedef qi_pd_status (*deallocate)(qi_pd_device *, void *, size_t);

typedef struct pair {
    allocate allocate;
    deallocate deallocate;
    const char *name;
} pair;

static pair functions_of(const qi_plugin *plugin, qi_plugin_role role)
{
    const qi_pd_interface *f = plugin->f;
    switch (role) {
    case QI_PLUGIN_HOST:
        return (pair){f->host_memory_allocate, f->host_memory_deallocate, "host_memory_allocate"};
    case QI_PLUGIN_UNIFIED:
        return (pair){f->unified_memory_allocate, f->unified_memory_deallocate,
                      "unified_memory_allocate"};
    case QI_PLUGIN_DEVICE:
    default:
        return (pair){f->device_memory_allocate, f->device_memory_deallocate,
                      "device_memory_allocate"};
    }
}

static bool round_up_overflows(uint64_t size, uint64_t multiple, uint64_t *rounded)
{
    uint64_t over = size % multiple;
    return qi_add_overflows(size, over ? multiple - over : 0, rounded);
}

/* ---- the entries of the table --------------------------------------------------------------- */

/* A warning beside memory is a success; a success without any is none. */
quire_result qi_plugin_page_create(void *state, const quire_page_request *request,
                                   quire_native_page *page)
{
    qi_plugin *plugin = state;
    qi_plugin_role role = plugin->roles[request->kind];
    pair f = functions_of(plugin, role);
    qi_plugin_turn turn;
    uint64_t size = 0;
    void *pointer = NULL;
    if (request->description)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "memory of others cannot become a plugin's page");
    if (request->extra.pointer || request->extra.number)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "a plugin makes its pages in one way only");
    if (round_up_overflows(request->size, plugin->multiple, &size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "a page of %u bytes", request->size);
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    qi_pd_status status = f.allocate(&plugin->unit->device, &pointer, size);
    qi_plugin_leave(plugin, &turn);
    if ((status && status != QI_PD_WARNING) || !pointer)
        return qi_plugin_fail_memory(plugin->library, status, f.name, size);
    *page = (quire_native_page){
        .handle = (uintptr_t)pointer, .address = (uintptr_t)pointer, .size = size, .data = role};
    atomic_fetch_or_explicit(&plugin->addresses, page->address, memory_order_relaxed);
    return QUIRE_SUCCESS;
}

/* Where the device cannot be made current its memory is given back all the same. */
void qi_plugin_page_destroy(void *state, const quire_native_page *page)
{
    qi_plugin *plugin = state;
    qi_plugin_turn turn;
    if (plugin->library->has_forked)
        return;
    pair f = functions_of(plugin, (qi_plugin_role)page->data);
    quire_result result = qi_plugin_enter(plugin, &turn);
    f.deallocate(&plugin->unit->device, (void *)(uintptr_t)page->handle, page->size);
    if (!result)
        qi_plugin_leave(plugin, &turn);
}

quire_result qi_plugin_page_map(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    *pointer = (void *)(uintptr_t)page->handle;
    return QUIRE_SUCCESS;
}

void qi_plugin_page_unmap(void *state, const quire_native_page *page)
{
    (void)state; /* the host reaches the page as long as it lives */
    (void)page;
}
