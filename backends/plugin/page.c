/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.c - pages of a plugin: device memory, pinned host memory and unified memory that the plugin
 * allocates. A page is deallocated with exactly the size of its allocation, which plugins require.
 */
#include "backends/plugin/plugin.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the plugin's functions by role ----------------------------------------------------- */

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

/* `multiple` need not be a power of two. */
static bool round_up_overflows(uint64_t size, uint64_t multiple, uint64_t *rounded)
{
    uint64_t over = size % multiple;
    return qi_add_overflows(size, over ? multiple - over : 0, rounded);
}

/* ---- entries of the backend table ------------------------------------------------------- */

/* C_WARNING with a pointer is a success. C_SUCCESS without a pointer is a failure. */
quire_result qi_plugin_page_create(void *state, const quire_page_request *request,
                                   quire_native_page *page)
{
    qi_plugin *plugin = state;
    qi_plugin_role role = plugin->roles[request->kind];
    pair f = functions_of(plugin, role);
    qi_plugin_saved_device saved;
    uint64_t size = 0;
    void *pointer = NULL;
    if (request->description)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "a plugin cannot adopt existing memory as a page");
    if (request->extra.pointer || request->extra.number)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "a plugin takes no extra parameters for its pages");
    if (round_up_overflows(request->size, plugin->multiple, &size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "a page of %u byte%s", request->size);
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    qi_pd_status status = f.allocate(&plugin->unit->device, &pointer, size);
    qi_plugin_leave(plugin, &saved);
    if ((status && status != QI_PD_WARNING) || !pointer)
        return qi_plugin_fail_memory(plugin->library, status, f.name, size);
    *page = (quire_native_page){
        .handle = (uintptr_t)pointer, .address = (uintptr_t)pointer, .size = size, .data = role};
    atomic_fetch_or_explicit(&plugin->addresses, page->address, memory_order_relaxed);
    return QUIRE_SUCCESS;
}

/* Deallocates even if the device cannot be made current: a leak would be certain otherwise. */
void qi_plugin_page_destroy(void *state, const quire_native_page *page)
{
    qi_plugin *plugin = state;
    qi_plugin_saved_device saved;
    if (plugin->library->has_forked)
        return;
    pair f = functions_of(plugin, (qi_plugin_role)page->data);
    quire_result result = qi_plugin_enter(plugin, &saved);
    f.deallocate(&plugin->unit->device, (void *)(uintptr_t)page->handle, page->size);
    if (!result)
        qi_plugin_leave(plugin, &saved);
}

quire_result qi_plugin_page_map(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    *pointer = (void *)(uintptr_t)page->handle;
    return QUIRE_SUCCESS;
}

void qi_plugin_page_unmap(void *state, const quire_native_page *page)
{
    (void)state; /* the host pointer is valid until the page is destroyed */
    (void)page;
}
