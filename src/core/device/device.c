/*
 * device.c - making a device: the checks of the backend's table and description, the list of its
 * memories. The door to the table's functions is door.c.
 */
#include "src/core/device/device.h"

#include <stdio.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/memory/fork.h"
#include "src/core/state/memory.h"
#include "src/core/deferred/stream.h"

/* Longer than submitted work takes between two points; who has longer work awaits its point. */
static const uint64_t PATIENCE_NANOSECONDS = UINT64_C(60000000000);

/* ---- the table ---------------------------------------------------------------------------- */

/* Each feature bit with the functions that it announces. */
static quire_result check_group(const quire_backend *table, quire_backend_features bit,
                                const char *names, bool all, bool any)
{
    bool said = (table->features & bit) != 0;
    if (said == all && said == any)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "backend '%s' %s %s and its feature bit %s: they go together", table->name,
                        said ? "lacks some of" : "has some of", names, said ? "is set" : "is not");
}

/* Groups that are nothing without another. */
static quire_result check_needs(const quire_backend *table)
{
    const quire_backend_features streams =
        QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY | QUIRE_BACKEND_STREAM_FILL;
    const quire_backend_features copies =
        QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_STREAM_COPY;
    if (table->features & streams && !(table->features & QUIRE_BACKEND_STREAMS))
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' orders, copies or fills on streams and has none",
                            table->name);
    if (table->features & QUIRE_BACKEND_ROWS && !(table->features & copies))
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' takes rows and has no copy that does", table->name);
    return QUIRE_SUCCESS;
}

static quire_result check_table(const quire_backend *t)
{
    if (!t->name || !*t->name)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the backend table has no name");
    if (!t->describe || !t->page_create || !t->page_destroy)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' lacks describe, page_create or page_destroy", t->name);
    const quire_backend_features known = (QUIRE_BACKEND_DEVICE_ADDRESS << 1) - 1;
    if (t->features & ~known)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' announces features this version does not know", t->name);
    const struct {
        quire_backend_features bit;
        const char *names;
        bool all, any;
    } groups[] = {
        {QUIRE_BACKEND_MAP, "map, unmap", t->map && t->unmap, t->map || t->unmap},
        {QUIRE_BACKEND_FLUSH, "flush, invalidate", t->flush && t->invalidate,
         t->flush || t->invalidate},
        {QUIRE_BACKEND_COPY_TO_PAGE, "copy_to_page", t->copy_to_page, t->copy_to_page},
        {QUIRE_BACKEND_COPY_FROM_PAGE, "copy_from_page", t->copy_from_page, t->copy_from_page},
        {QUIRE_BACKEND_IMAGES, "image_requirements", t->image_requirements, t->image_requirements},
        {QUIRE_BACKEND_OBJECTS, "object_create, object_bind, object_destroy",
         t->object_create && t->object_bind && t->object_destroy,
         t->object_create || t->object_bind || t->object_destroy},
        {QUIRE_BACKEND_BUDGET, "heap_budget", t->heap_budget, t->heap_budget},
        {QUIRE_BACKEND_FILL, "fill_page", t->fill_page, t->fill_page},
        {QUIRE_BACKEND_COPY_PAGES, "copy_pages", t->copy_pages, t->copy_pages},
        {QUIRE_BACKEND_COPY_PEER, "copy_peer", t->copy_peer, t->copy_peer},
        {QUIRE_BACKEND_STREAMS,
         "stream_create, stream_destroy, stream_mark, stream_passed, stream_await",
         t->stream_create && t->stream_destroy && t->stream_mark && t->stream_passed &&
             t->stream_await,
         t->stream_create || t->stream_destroy || t->stream_mark || t->stream_passed ||
             t->stream_await},
        {QUIRE_BACKEND_STREAM_ORDER, "stream_order", t->stream_order, t->stream_order},
        {QUIRE_BACKEND_STREAM_COPY, "stream_copy", t->stream_copy, t->stream_copy},
        {QUIRE_BACKEND_STREAM_FILL, "stream_fill", t->stream_fill, t->stream_fill},
        {QUIRE_BACKEND_FLUSH_MANY, "flush_many, invalidate_many",
         t->flush_many && t->invalidate_many, t->flush_many || t->invalidate_many},
        {QUIRE_BACKEND_ELASTIC, "page_resize", t->page_resize, t->page_resize},
        {QUIRE_BACKEND_FORK, "fork_prepare, fork_done, fork_child",
         t->fork_prepare && t->fork_done && t->fork_child,
         t->fork_prepare || t->fork_done || t->fork_child},
        {QUIRE_BACKEND_DEVICE_ADDRESS, "device_address", t->device_address, t->device_address},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        quire_result result =
            check_group(t, groups[i].bit, groups[i].names, groups[i].all, groups[i].any);
        if (result)
            return result;
    }
    return check_needs(t);
}

/* ---- the description ---------------------------------------------------------------------- */

static const uint32_t KNOWN_HEAP_FLAGS = QUIRE_HEAP_DEVICE_LOCAL | QUIRE_HEAP_MULTI_INSTANCE;

static quire_result check_kind(const quire_backend *table, const quire_device_info *info,
                               uint32_t index)
{
    const quire_kind *kind = &info->kinds[index];
    const quire_memory_flags host = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT;
    if (kind->heap >= info->heap_count)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "memory kind %u names heap %u of %u",
                            index, kind->heap, info->heap_count);
    if (kind->flags & ~QI_KNOWN_FLAGS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "memory kind %u has unknown flags %x",
                            index, kind->flags & ~QI_KNOWN_FLAGS);
    if (!(kind->flags & QUIRE_HOST_VISIBLE) &&
        kind->flags & (QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "memory kind %u is coherent or cached and not host-visible: flags %x",
                            index, kind->flags);
    if (kind->flags & QUIRE_HOST_VISIBLE && !(table->features & QUIRE_BACKEND_MAP))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "memory kind %u is host-visible and the backend cannot map", index);
    if ((kind->flags & host) == QUIRE_HOST_VISIBLE && !(table->features & QUIRE_BACKEND_FLUSH))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "memory kind %u is not coherent and the backend cannot flush", index);
    if (kind->flags & QUIRE_OBJECTS_ONLY &&
        (kind->flags & QUIRE_HOST_VISIBLE || !(table->features & QUIRE_BACKEND_OBJECTS)))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "memory kind %u is for objects only, and is host-visible or the "
                            "backend has no objects: flags %x",
                            index, kind->flags);
    return QUIRE_SUCCESS;
}

static quire_result check_limits(const quire_limits *limits)
{
    const struct {
        const char *name;
        uint64_t value;
    } powers[] = {
        {"page_granularity", limits->page_granularity},
        {"page_alignment", limits->page_alignment},
        {"buffer_image_granularity", limits->buffer_image_granularity},
        {"non_coherent_atom", limits->non_coherent_atom},
        {"buffer_alignment", limits->buffer_alignment},
        {"image_row_alignment", limits->image_row_alignment},
    };
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
        if (powers[i].value && !qi_is_power_of_two(powers[i].value))
            return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                                "limit %s is %llu, not a power of two", powers[i].name,
                                (unsigned long long)powers[i].value);
    return QUIRE_SUCCESS;
}

static quire_result check_growth(const quire_backend *table, const quire_device_info *info)
{
    uint64_t kinds = info->limits.elastic_kinds;
    bool grows = table->features & QUIRE_BACKEND_ELASTIC;
    if (kinds >> info->kind_count)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "elastic_kinds is %x, and there are %u memory kinds", kinds,
                            info->kind_count);
    if (kinds && !grows)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "elastic_kinds is %x, and the backend cannot resize pages", kinds);
    return QUIRE_SUCCESS;
}

static quire_result check_info(const quire_backend *table, const quire_device_info *info)
{
    if (!info->heap_count || info->heap_count > QUIRE_MAX_HEAPS || !info->kind_count ||
        info->kind_count > QUIRE_MAX_KINDS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "%u heaps and %u memory kinds: a device has 1 to 16 and 1 to 32",
                            info->heap_count, info->kind_count);
    for (uint32_t i = 0; i < info->heap_count; i++)
        if (!info->heaps[i].size || info->heaps[i].flags & ~KNOWN_HEAP_FLAGS)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "heap %u has size %u and flags %x", i,
                                info->heaps[i].size, info->heaps[i].flags);
    for (uint32_t i = 0; i < info->kind_count; i++) {
        quire_result result = check_kind(table, info, i);
        if (result)
            return result;
    }
    quire_result result = check_limits(&info->limits);
    return result ? result : check_growth(table, info);
}

static void resolve_limits(quire_limits *limits)
{
    uint64_t *ones[] = {&limits->page_granularity, &limits->buffer_image_granularity,
                        &limits->non_coherent_atom, &limits->buffer_alignment,
                        &limits->image_row_alignment};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        *ones[i] += !*ones[i];
}

static quire_result describe(quire_device *device)
{
    memset(&device->info, 0, sizeof device->info);
    uint64_t errors = qi_error_count();
    quire_result result = device->table.describe(device->state, &device->info);
    result = qi_backend_answer(device->original->name, result, errors);
    if (result)
        return result;
    device->info.name[sizeof device->info.name - 1] = '\0';
    device->info.backend = device->original->name;
    result = check_info(&device->table, &device->info);
    if (!result)
        resolve_limits(&device->info.limits);
    return result;
}

/* ---- creation ----------------------------------------------------------------------------- */

static void copy_table(quire_device *device, const quire_backend *table)
{
    size_t size = table->size < sizeof device->table ? table->size : sizeof device->table;
    memcpy(&device->table, table, size);
    device->original = table;
}

static quire_result fill_in(quire_device *device, const quire_backend *table, void *state)
{
    copy_table(device, table);
    device->state = state;
    quire_result result = check_table(&device->table);
    if (!result)
        result = describe(device);
    qi_lock_init(&device->lock, "device", QI_RANK_DEVICE);
    device->stall_timeout = PATIENCE_NANOSECONDS;
    return result;
}

quire_result quire_device_create(const quire_backend *table, void *state,
                                 const quire_device_options *options, quire_device **out)
{
    if (out)
        *out = NULL;
    if (!table || !out)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_create: table or device is null");
    if (table->size < offsetof(quire_backend, destroy))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "the backend table says it has %u bytes, too few for what is required",
                            table->size);
    quire_device_options resolved = options ? *options : (quire_device_options){0};
    qi_host host;
    quire_result result = qi_check_unused(&resolved, "quire_device_options");
    if (!result)
        result = qi_host_init(&host, resolved.host_memory);
    if (result)
        return result;
    quire_device *device = qi_host_allocate(&host, 1, sizeof *device);
    if (!device)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a device");
    device->host = host;
    device->log = resolved.log;
    result = fill_in(device, table, state);
    if (!result)
        result = qi_fork_add(device);
    if (result) {
        qi_host_release(&host, device, 1, sizeof *device);
        return result;
    }
    *out = device;
    qi_log(&device->log, QUIRE_LOG_INFO,
           "device '%s' opened: backend %s, %u heaps, %u memory kinds", device->info.name,
           table->name, device->info.heap_count, device->info.kind_count);
    return QUIRE_SUCCESS;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* The names of the memories that still live, cut where the room ends. */
static void list_memories(quire_device *device, char *text, size_t room)
{
    size_t length = 0;
    text[0] = '\0';
    for (quire_memory *m = device->memories; m && length + 1 < room; m = m->next_of_device) {
        int more = snprintf(text + length, room - length, "%s'%s'", length ? ", " : "", m->name);
        length += more > 0 ? (size_t)more : 0;
    }
}

quire_result quire_device_destroy(quire_device **device)
{
    if (!device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_device_destroy: device is null");
    quire_device *ending = *device;
    if (!ending)
        return QUIRE_SUCCESS;
    char names[512];
    qi_lock_acquire(&ending->lock);
    uint32_t count = ending->memory_count;
    list_memories(ending, names, sizeof names);
    qi_lock_release(&ending->lock);
    if (!count && ending->streams)
        return qi_fail_text(QUIRE_ERROR_BUSY, "device '%s' still has streams: '%s' is one",
                            ending->info.name, ending->streams->name);
    bool is_named = qi_atomic_load_acquire_u64(&ending->stream_records) != 0;
    if (!count && is_named && !ending->is_copy)
        return qi_fail_text(QUIRE_ERROR_BUSY,
                            "device '%s': allocations of another device were used on a capture stream "
                            "of it that is gone, and are live",
                            ending->info.name);
    if (count) {
        qi_log(&ending->log, QUIRE_LOG_WARNING, "device '%s' cannot go, memories live (%u): %s",
               ending->info.name, count, names);
        return qi_fail_text(QUIRE_ERROR_BUSY, "device '%s' still has live memories (%u): %s",
                            ending->info.name, count, names);
    }
    *device = NULL;
    qi_fork_remove(ending);
    if (ending->table.destroy)
        ending->table.destroy(ending->state);
    qi_log(&ending->log, QUIRE_LOG_INFO, "device '%s' closed", ending->info.name);
    if (is_named) /* in the child of a fork: who released the last of them may be gone */
        return QUIRE_SUCCESS;
    qi_host host = ending->host;
    qi_host_release(&host, ending, 1, sizeof *ending);
    return QUIRE_SUCCESS;
}

/* ---- memories and questions --------------------------------------------------------------- */

void qi_device_add_memory(quire_device *device, quire_memory *memory)
{
    qi_lock_acquire(&device->lock);
    memory->next_of_device = device->memories;
    device->memories = memory;
    device->memory_count++;
    qi_lock_release(&device->lock);
}

void qi_device_remove_memory(quire_device *device, quire_memory *memory)
{
    qi_lock_acquire(&device->lock);
    quire_memory **link = &device->memories;
    while (*link != memory)
        link = &(*link)->next_of_device;
    *link = memory->next_of_device;
    device->memory_count--;
    qi_lock_release(&device->lock);
}

quire_result quire_device_get_info(const quire_device *device, quire_device_info *info)
{
    if (info)
        memset(info, 0, sizeof *info);
    if (!device || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_get_info: device or info is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    *info = device->info;
    return QUIRE_SUCCESS;
}

const quire_backend *quire_device_backend(const quire_device *device)
{
    return device ? device->original : NULL;
}

void *quire_device_state(const quire_device *device)
{
    return device ? device->state : NULL;
}

quire_result quire_backend_fail(quire_result result, int64_t native_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qi_fail_native(result, native_code, format, args);
    va_end(args);
    return result;
}
