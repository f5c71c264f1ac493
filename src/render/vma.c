/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma.c - writes a memory or a device as the detailed statistics of the Vulkan Memory Allocator,
 * version 3 (vmaBuildStatsString), which its GpuMemDumpVis draws.
 *
 * The keys are those of tools/GpuMemDumpVis/GpuMemDump.schema.json. That program adds up the sizes
 * of a block's ranges instead of reading their offsets: the ranges leave no byte of a block out. An
 * object may list its keys in any order, so that the sums follow the ranges that they count.
 */
#include <inttypes.h>
#include <stdio.h>

#include "quire/export.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/core/state/memory.h"

/* ---- sums --------------------------------------------------------------------------------- */

typedef struct sizes {
    uint64_t count, bytes, min, max;
} sizes;

typedef struct sums {
    uint64_t blocks, block_bytes;
    sizes allocations, unused;
} sums;

static void add_size(sizes *s, uint64_t bytes)
{
    s->min = !s->count || bytes < s->min ? bytes : s->min;
    s->max = bytes > s->max ? bytes : s->max;
    s->bytes += bytes;
    s->count++;
}

static void add_sizes(sizes *to, const sizes *from)
{
    if (!from->count)
        return;
    to->min = !to->count || from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
    to->bytes += from->bytes;
    to->count += from->count;
}

static void add_sums(sums *to, const sums *from)
{
    to->blocks += from->blocks;
    to->block_bytes += from->block_bytes;
    add_sizes(&to->allocations, &from->allocations);
    add_sizes(&to->unused, &from->unused);
}

/* As VMA: extremes only of more than one. */
static void write_sums(qi_json *json, const char *key, const sums *s)
{
    qi_json_object(json, key);
    qi_json_number(json, "BlockCount", s->blocks);
    qi_json_number(json, "BlockBytes", s->block_bytes);
    qi_json_number(json, "AllocationCount", s->allocations.count);
    qi_json_number(json, "AllocationBytes", s->allocations.bytes);
    qi_json_number(json, "UnusedRangeCount", s->unused.count);
    if (s->allocations.count > 1) {
        qi_json_number(json, "AllocationSizeMin", s->allocations.min);
        qi_json_number(json, "AllocationSizeMax", s->allocations.max);
    }
    if (s->unused.count > 1) {
        qi_json_number(json, "UnusedRangeSizeMin", s->unused.min);
        qi_json_number(json, "UnusedRangeSizeMax", s->unused.max);
    }
    qi_json_end_object(json);
}

/* ---- the ranges of a memory --------------------------------------------------------------- */

typedef struct vma_dump {
    qi_json json;
    const quire_memory *only; /* the memory to write; NULL: all of the device */
    sums kinds[QUIRE_MAX_KINDS];
    uint32_t kind;   /* whose memories are written */
    bool is_listed;  /* the list of this kind is open */
    uint64_t number; /* of the next memory of the device */
    quire_result result;
    quire_memory_info info; /* of the memory that is written */
    bool is_dedicated;      /* its dedicated pages are written, else the others */
    bool is_open;           /* a block */
    uint32_t page;          /* its page, or the last dedicated one */
    uint64_t stretches;     /* of the elastic page so far */
    uint64_t begin, end, size;
    sums block;
} vma_dump;

static void write_range(vma_dump *d, uint64_t offset, uint64_t size, const quire_item *item)
{
    qi_json *json = &d->json;
    char data[17];
    qi_json_object(json, NULL);
    if (!d->is_dedicated)
        qi_json_number(json, "Offset", offset - d->begin);
    qi_json_text(json, "Type",
                 !item                                 ? "FREE"
                 : item->object == QUIRE_OBJECT_BUFFER ? "BUFFER"
                 : item->object == QUIRE_OBJECT_IMAGE  ? "IMAGE_UNKNOWN"
                                                       : "UNKNOWN");
    qi_json_number(json, "Size", size);
    if (item)
        qi_json_number(json, "Usage", 0);
    if (item && item->user_data) {
        snprintf(data, sizeof data, "%016" PRIX64, item->user_data);
        qi_json_text(json, "CustomData", data);
    }
    if (item && *item->name)
        qi_json_text(json, "Name", item->name);
    qi_json_end_object(json);
    add_size(item ? &d->block.allocations : &d->block.unused, size);
    d->end = offset + size;
}

static void end_block(vma_dump *d)
{
    qi_json *json = &d->json;
    if (!d->is_open)
        return;
    if (d->end < d->size)
        write_range(d, d->end, d->size - d->end, NULL);
    d->block.blocks = 1;
    d->block.block_bytes = d->end - d->begin;
    qi_json_end_array(json);
    qi_json_number(json, "TotalBytes", d->block.block_bytes);
    qi_json_number(json, "UnusedBytes", d->block.unused.bytes);
    qi_json_number(json, "Allocations", d->block.allocations.count);
    qi_json_number(json, "UnusedRanges", d->block.unused.count);
    qi_json_end_object(json);
    add_sums(&d->kinds[d->kind], &d->block);
    d->is_open = false;
}

/* A block is a page, or a stretch of the elastic page that has memory. */
static void begin_block(vma_dump *d, const quire_item *item, uint64_t begin)
{
    char key[24];
    const bool is_elastic = d->info.address_space != 0;
    end_block(d);
    d->is_open = true;
    d->page = item->page;
    d->begin = d->end = is_elastic ? begin : 0;
    d->size = is_elastic ? 0 : item->page_size;
    d->block = (sums){.blocks = 0};
    snprintf(key, sizeof key, "%" PRIu64, is_elastic ? d->stretches++ : item->page);
    qi_json_object(&d->json, key);
    qi_json_array(&d->json, "Suballocations");
}

/* Left padding is part of an allocation: it holds these bytes. A lazy allocation, of which the walk
   does not tell the chunks, has as many bytes as have memory; without memory it is left out. */
static bool write_shared(void *user, const quire_item *item)
{
    vma_dump *d = user;
    const uint64_t begin = item->offset - item->left_padding;
    const uint64_t held = item->backed + item->left_padding;
    if (item->dedicated || !held)
        return true;
    if (!d->is_open || d->page != item->page || (!d->size && begin > d->end))
        begin_block(d, item, begin);
    if (begin > d->end)
        write_range(d, d->end, begin - d->end, NULL);
    write_range(d, begin, held, item->is_free ? NULL : item);
    return !d->json.writer.failed;
}

/* A dedicated page counts as a block. Its bytes beside the allocation count only in the sums. */
static bool write_dedicated(void *user, const quire_item *item)
{
    vma_dump *d = user;
    if (!item->dedicated)
        return true;
    d->block = (sums){.blocks = d->page != item->page};
    d->block.block_bytes = d->block.blocks ? item->page_size : 0;
    d->page = item->page;
    if (item->is_free)
        add_size(&d->block.unused, item->size);
    else
        write_range(d, item->offset, item->size + item->left_padding, item);
    add_sums(&d->kinds[d->kind], &d->block);
    return !d->json.writer.failed;
}

static quire_result write_pool(vma_dump *d, const quire_memory *memory)
{
    qi_json *json = &d->json;
    char name[QUIRE_MAX_NAME + 32];
    snprintf(name, sizeof name, "%" PRIu64 " - %s", d->number, d->info.name);
    qi_json_object(json, NULL);
    qi_json_text(json, "Name", name);
    qi_json_number(json, "PreferredBlockSize", d->info.page_size);
    qi_json_object(json, "Blocks");
    d->is_dedicated = d->is_open = false;
    d->stretches = 0;
    quire_result result = quire_memory_walk(memory, write_shared, d);
    end_block(d);
    qi_json_end_object(json);
    qi_json_array(json, "DedicatedAllocations");
    d->is_dedicated = true;
    d->page = UINT32_MAX;
    if (!result)
        result = quire_memory_walk(memory, write_dedicated, d);
    qi_json_end_array(json);
    qi_json_end_object(json);
    return result;
}

/* ---- the device --------------------------------------------------------------------------- */

static bool write_memory_of_kind(void *user, quire_memory *memory)
{
    vma_dump *d = user;
    d->result = quire_memory_get_info(memory, &d->info);
    if (!d->result && d->info.kind == d->kind && (!d->only || d->only == memory)) {
        char key[16];
        snprintf(key, sizeof key, "Type %" PRIu32, d->kind);
        if (!d->is_listed)
            qi_json_array(&d->json, key);
        d->is_listed = true;
        d->result = write_pool(d, memory);
    }
    d->number++;
    return !d->result && !d->json.writer.failed;
}

static quire_result write_pools(vma_dump *d, const quire_device *device)
{
    quire_result result = QUIRE_SUCCESS;
    qi_json_object(&d->json, "DefaultPools");
    qi_json_end_object(&d->json);
    qi_json_object(&d->json, "CustomPools");
    for (d->kind = 0; d->kind < device->info.kind_count && !result; d->kind++) {
        d->is_listed = false;
        d->number = 0;
        result = quire_device_walk(device, write_memory_of_kind, d);
        result = result ? result : d->result;
        if (d->is_listed)
            qi_json_end_array(&d->json);
    }
    qi_json_end_object(&d->json);
    return result;
}

static void write_flags(qi_json *json, quire_memory_flags flags)
{
    qi_json_array(json, "Flags");
    for (quire_memory_flags flag = 1; quire_memory_flag_name(flag); flag <<= 1)
        if (flags & flag)
            qi_json_text(json, NULL, quire_memory_flag_name(flag));
    qi_json_end_array(json);
}

static sums sums_of_heap(const vma_dump *d, const quire_device_info *info, uint32_t heap)
{
    sums s = {.blocks = 0};
    for (uint32_t kind = 0; kind < info->kind_count; kind++)
        if (info->kinds[kind].heap == heap)
            add_sums(&s, &d->kinds[kind]);
    return s;
}

static void write_heap(vma_dump *d, const quire_device *device, uint32_t heap)
{
    qi_json *json = &d->json;
    const quire_device_info *info = &device->info;
    const sums all = sums_of_heap(d, info, heap);
    quire_budget_info budget;
    char key[24];
    qi_device_describe_heap(qi_device_queried(device), heap, &budget);
    snprintf(key, sizeof key, "Heap %" PRIu32, heap);
    qi_json_object(json, key);
    qi_json_array(json, "Flags");
    if (info->heaps[heap].flags & QUIRE_HEAP_DEVICE_LOCAL)
        qi_json_text(json, NULL, "DEVICE_LOCAL");
    if (info->heaps[heap].flags & QUIRE_HEAP_MULTI_INSTANCE)
        qi_json_text(json, NULL, "MULTI_INSTANCE");
    qi_json_end_array(json);
    qi_json_number(json, "Size", budget.size);
    qi_json_object(json, "Budget");
    qi_json_number(json, "BudgetBytes", budget.budget);
    qi_json_number(json, "UsageBytes", budget.usage);
    qi_json_end_object(json);
    write_sums(json, "Stats", &all);
    qi_json_object(json, "MemoryPools");
    for (uint32_t kind = 0; kind < info->kind_count; kind++) {
        if (info->kinds[kind].heap != heap)
            continue;
        snprintf(key, sizeof key, "Type %" PRIu32, kind);
        qi_json_object(json, key);
        write_flags(json, info->kinds[kind].flags);
        write_sums(json, "Stats", &d->kinds[kind]);
        qi_json_end_object(json);
    }
    qi_json_end_object(json);
    qi_json_end_object(json);
}

static quire_result write_device(vma_dump *d, const quire_device *device)
{
    qi_json *json = &d->json;
    const quire_device_info *info = &device->info;
    sums total = {.blocks = 0};
    qi_json_object(json, NULL);
    qi_json_object(json, "General");
    qi_json_text(json, "API", "Vulkan");
    qi_json_text(json, "GPU", info->name);
    qi_json_number(json, "memoryHeapCount", info->heap_count);
    qi_json_number(json, "memoryTypeCount", info->kind_count);
    qi_json_end_object(json);
    quire_result result = write_pools(d, device);
    if (result)
        return result;
    qi_json_object(json, "MemoryInfo");
    for (uint32_t heap = 0; heap < info->heap_count; heap++) {
        const sums all = sums_of_heap(d, info, heap);
        add_sums(&total, &all);
        write_heap(d, device, heap);
    }
    qi_json_end_object(json);
    write_sums(json, "Total", &total);
    qi_json_end_object(json);
    return qi_json_finish(json);
}

quire_result quire_memory_write_vma(const quire_memory *memory, quire_sink sink, void *user)
{
    vma_dump d = {.only = memory};
    if (!memory || !sink)
        return qi_fail_null("quire_memory_write_vma", !memory ? "memory" : "sink");
    qi_json_init(&d.json, sink, user);
    return write_device(&d, memory->device);
}

quire_result quire_device_write_vma(const quire_device *device, quire_sink sink, void *user)
{
    vma_dump d = {.only = NULL};
    if (!device || !sink)
        return qi_fail_null("quire_device_write_vma", !device ? "device" : "sink");
    qi_json_init(&d.json, sink, user);
    return write_device(&d, device);
}
