/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * describe.c - checks of what a backend hands in: its function table and its description of the
 * device. Runs while the device is created, when one thread knows it, without a lock.
 *
 * The rest of the library relies on these checks: a feature bit means that its functions exist, a
 * host-visible kind can be mapped, and limits are powers of two.
 */
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/device.h"

/* ---- the table ---------------------------------------------------------------------------- */

/*
 * A feature bit and the functions that it announces go together. `all` and `any`: whether all of
 * the functions, or any of them, are there.
 */
static quire_result check_group(const quire_backend *table, quire_backend_features bit,
                                const char *names, bool all, bool any)
{
    bool is_announced = (table->features & bit) != 0;
    if (is_announced == all && is_announced == any)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "backend '%s' %s %s and its feature bit %s: they go together", table->name,
                        is_announced ? "lacks some of" : "has some of", names,
                        is_announced ? "is set" : "is not");
}

/* Features that need another feature. */
static quire_result check_dependencies(const quire_backend *table)
{
    const quire_backend_features streams = QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY |
                                           QUIRE_BACKEND_STREAM_FILL |
                                           QUIRE_BACKEND_STREAM_WRITE_MANY;
    const quire_backend_features copies =
        QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_STREAM_COPY;
    if (table->features & streams && !(table->features & QUIRE_BACKEND_STREAMS))
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' announces calls on streams and has no streams",
                            table->name);
    if (table->features & QUIRE_BACKEND_ROWS && !(table->features & copies))
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' announces rows and has no copy function that takes them",
                            table->name);
    return QUIRE_SUCCESS;
}

static quire_result check_groups(const quire_backend *t)
{
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
        {QUIRE_BACKEND_ELASTIC, "page_back, page_unback", t->page_back && t->page_unback,
         t->page_back || t->page_unback},
        {QUIRE_BACKEND_FORK, "fork_prepare, fork_done, fork_child",
         t->fork_prepare && t->fork_done && t->fork_child,
         t->fork_prepare || t->fork_done || t->fork_child},
        {QUIRE_BACKEND_DEVICE_ADDRESS, "device_address", t->device_address, t->device_address},
        {QUIRE_BACKEND_COPY_MANY, "write_many, read_many", t->write_many && t->read_many,
         t->write_many || t->read_many},
        {QUIRE_BACKEND_STREAM_WRITE_MANY, "stream_write_many", t->stream_write_many,
         t->stream_write_many},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        quire_result result =
            check_group(t, groups[i].bit, groups[i].names, groups[i].all, groups[i].any);
        if (result)
            return result;
    }
    return QUIRE_SUCCESS;
}

static quire_result check_table(const quire_backend *t)
{
    if (!t->name || !*t->name)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the backend table has no name");
    if (!t->describe || !t->page_create || !t->page_destroy)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' lacks describe, page_create or page_destroy", t->name);
    const quire_backend_features known = (QUIRE_BACKEND_STREAM_WRITE_MANY << 1) - 1;
    if (t->features & ~known)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "backend '%s' announces features this version does not know", t->name);
    quire_result result = check_groups(t);
    return result ? result : check_dependencies(t);
}

/* ---- the description ---------------------------------------------------------------------- */

static const uint32_t KNOWN_HEAP_FLAGS = QUIRE_HEAP_DEVICE_LOCAL | QUIRE_HEAP_MULTI_INSTANCE;

/* The heap exists, the flags are known and consistent, and the table has what they need. */
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

/* Every limit below is 0 or a power of two. */
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
        {"elastic_granularity", limits->elastic_granularity},
    };
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
        if (powers[i].value && !qi_is_power_of_two(powers[i].value))
            return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                                "limit %s is %llu, not a power of two", powers[i].name,
                                (unsigned long long)powers[i].value);
    return QUIRE_SUCCESS;
}

/* Kinds whose pages can be elastic exist, and the backend has the functions for it. */
static quire_result check_elastic(const quire_backend *table, const quire_device_info *info)
{
    uint64_t kinds = info->limits.elastic_kinds; /* one bit for each kind */
    bool can_back = table->features & QUIRE_BACKEND_ELASTIC;
    if (kinds >> info->kind_count)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "elastic_kinds is %x, and the device has %u memory kind%s", kinds,
                            info->kind_count);
    if (kinds && !can_back)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "elastic_kinds is %x, and the backend cannot back pages", kinds);
    const quire_elastic_rules known = QUIRE_ELASTIC_KEEPS_MEMORY | QUIRE_ELASTIC_NEEDS_IDLE;
    if (info->limits.elastic_rules & ~known)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "elastic_rules has bits %x, which this version does not know",
                            info->limits.elastic_rules & ~known);
    return QUIRE_SUCCESS;
}

static quire_result check_info(const quire_backend *table, const quire_device_info *info)
{
    if (!info->heap_count || info->heap_count > QUIRE_MAX_HEAPS || !info->kind_count ||
        info->kind_count > QUIRE_MAX_KINDS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "%u heap%s and %u memory kind%s: a device has 1 to 16 and 1 to 32",
                            info->heap_count, info->kind_count);
    for (uint32_t i = 0; i < info->heap_count; i++)
        if (!info->heaps[i].size || info->heaps[i].flags & ~KNOWN_HEAP_FLAGS)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "heap %u has size 0 or unknown flags: size %u, flags %x", i,
                                info->heaps[i].size, info->heaps[i].flags);
    for (uint32_t i = 0; i < info->kind_count; i++) {
        quire_result result = check_kind(table, info, i);
        if (result)
            return result;
    }
    quire_result result = check_limits(&info->limits);
    return result ? result : check_elastic(table, info);
}

/* A granularity, alignment or atom of 0 means 1, that of elastic pages the same as that of pages.
   page_alignment stays: 0 means no promise. */
static void resolve_limits(quire_limits *limits)
{
    uint64_t *ones[] = {&limits->page_granularity, &limits->buffer_image_granularity,
                        &limits->non_coherent_atom, &limits->buffer_alignment,
                        &limits->image_row_alignment};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        *ones[i] += !*ones[i];
    if (limits->elastic_granularity < limits->page_granularity)
        limits->elastic_granularity = limits->page_granularity;
}

/* If the backend fails without a reason, qi_backend_answer adds one. */
static quire_result describe(quire_device *device)
{
    memset(&device->info, 0, sizeof device->info);
    uint64_t errors = qi_error_count();
    quire_result result = device->table.describe(device->state, &device->info);
    result = qi_backend_answer(device->original->name, result, errors);
    if (result)
        return result;
    device->info.name[sizeof device->info.name - 1] = '\0'; /* a backend may fill the whole array */
    device->info.backend = device->original->name;
    result = check_info(&device->table, &device->info);
    if (!result)
        resolve_limits(&device->info.limits);
    return result;
}

quire_result qi_device_describe(quire_device *device)
{
    quire_result result = check_table(&device->table);
    return result ? result : describe(device);
}
