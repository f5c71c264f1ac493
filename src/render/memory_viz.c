/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_viz.c - writes a memory as a snapshot of torch's allocator (see memory_viz.h).
 *
 * The keys and the states are those that torch/csrc/cuda/Module.cpp writes and that
 * torch/utils/viz/MemoryViz.js reads. That viewer takes the address of a block from the sizes of
 * the blocks before it: the blocks of a segment leave no byte of it out.
 */
#include "src/render/memory_viz.h"

#include "quire/export.h"
#include "src/base/result.h"

/* ---- addresses ---------------------------------------------------------------------------- */

static const uint64_t FIRST_CHOSEN = UINT64_C(1) << 52;
static const uint64_t CHOSEN_STEP = UINT64_C(1) << 21; /* between the beginnings of two pages */

uint64_t qi_viz_choose(uint64_t *chosen, uint64_t size)
{
    const uint64_t address = FIRST_CHOSEN + *chosen;
    *chosen += (size / CHOSEN_STEP + 1) * CHOSEN_STEP;
    return address;
}

static uint64_t address_of(qi_viz *viz, const quire_item *item)
{
    quire_page_info page;
    if (viz->address)
        return viz->address(viz->user, item->page);
    if (!quire_page_get_info(viz->memory, item->page, &page) && page.address)
        return page.address;
    return qi_viz_choose(&viz->chosen, item->page_size);
}

/* ---- segments ----------------------------------------------------------------------------- */

void qi_viz_write_frames(qi_pickle *pickle, const char *name, const char *memory, uint32_t page)
{
    qi_pickle_list(pickle, "frames");
    if (name && *name) {
        qi_pickle_dict(pickle, NULL);
        qi_pickle_text(pickle, "name", name);
        qi_pickle_text(pickle, "filename", memory);
        qi_pickle_number(pickle, "line", page);
        qi_pickle_end_dict(pickle);
    }
    qi_pickle_end_list(pickle);
}

/* Requested bytes that have memory. */
static uint64_t requested_of(const quire_item *item)
{
    return item->requested < item->backed ? item->requested : item->backed;
}

static void write_block(qi_viz *viz, uint64_t offset, uint64_t size, const char *state,
                        const quire_item *item)
{
    qi_pickle *pickle = &viz->pickle;
    qi_pickle_dict(pickle, NULL);
    qi_pickle_number(pickle, "address", viz->page_address + offset);
    qi_pickle_number(pickle, "size", size);
    qi_pickle_number(pickle, "requested_size", item ? requested_of(item) : 0);
    qi_pickle_text(pickle, "state", state);
    qi_viz_write_frames(pickle, item ? item->name : NULL, viz->info.name, viz->page);
    qi_pickle_end_dict(pickle);
    viz->end = offset + size;
}

static void end_segment(qi_viz *viz)
{
    qi_pickle *pickle = &viz->pickle;
    if (!viz->is_open)
        return;
    if (viz->end < viz->size)
        write_block(viz, viz->end, viz->size - viz->end, "inactive", NULL);
    qi_pickle_end_list(pickle);
    qi_pickle_number(pickle, "total_size", viz->end - viz->begin);
    qi_pickle_number(pickle, "allocated_size", viz->allocated);
    qi_pickle_number(pickle, "active_size", viz->active);
    qi_pickle_number(pickle, "requested_size", viz->requested);
    qi_pickle_end_dict(pickle);
    viz->is_open = false;
}

/* A stretch of an elastic page begins with its first range, a page at 0. */
static void begin_segment(qi_viz *viz, const quire_item *item, uint64_t begin)
{
    qi_pickle *pickle = &viz->pickle;
    const bool is_elastic = viz->info.address_space && !item->dedicated;
    const bool is_same_page = viz->is_open && viz->page == item->page;
    end_segment(viz);
    if (!is_same_page)
        viz->page_address = address_of(viz, item);
    viz->is_open = true;
    viz->page = item->page;
    viz->size = is_elastic ? 0 : item->page_size;
    viz->begin = viz->end = is_elastic ? begin : 0;
    viz->active = viz->allocated = viz->requested = 0;
    qi_pickle_dict(pickle, NULL);
    qi_pickle_number(pickle, "device", 0);
    qi_pickle_number(pickle, "address", viz->page_address + viz->begin);
    qi_pickle_number(pickle, "stream", 0);
    qi_pickle_text(pickle, "segment_type", "large");
    qi_pickle_pair(pickle, "segment_pool_id", 0, viz->index);
    qi_pickle_bool(pickle, "is_expandable", is_elastic);
    qi_viz_write_frames(pickle, NULL, NULL, 0);
    qi_pickle_list(pickle, "blocks");
}

/* Left padding, and the edges of a page that the walk leaves out, are inactive blocks: so a block
   has the address of its allocation. A lazy allocation, of which the walk does not tell the chunks,
   is a block of as many bytes as have memory. */
static bool write_item(void *user, const quire_item *item)
{
    qi_viz *viz = user;
    const uint64_t begin = item->offset - item->left_padding;
    if (item->offset + item->backed == begin)
        return true;
    if (!viz->is_open || viz->page != item->page || (!viz->size && begin > viz->end))
        begin_segment(viz, item, begin);
    if (item->offset > viz->end)
        write_block(viz, viz->end, item->offset - viz->end, "inactive", NULL);
    if (item->is_free) {
        write_block(viz, item->offset, item->size, "inactive", NULL);
        return !viz->pickle.writer.failed;
    }
    const bool is_live = item->allocation.id != 0;
    write_block(viz, item->offset, item->backed,
                is_live ? "active_allocated" : "active_pending_free", item);
    viz->active += item->backed;
    viz->allocated += is_live ? item->backed : 0;
    viz->requested += is_live ? requested_of(item) : 0;
    return !viz->pickle.writer.failed;
}

/* ---- the snapshot ------------------------------------------------------------------------- */

void qi_viz_begin(qi_viz *viz, quire_sink sink, void *user)
{
    *viz = (qi_viz){.chosen = 0};
    qi_pickle_init(&viz->pickle, sink, user);
    qi_pickle_dict(&viz->pickle, NULL);
    qi_pickle_list(&viz->pickle, "segments");
}

quire_result qi_viz_write_memory(qi_viz *viz, const quire_memory *memory)
{
    viz->memory = memory;
    quire_result result = quire_memory_get_info(memory, &viz->info);
    if (!result)
        result = quire_memory_walk(memory, write_item, viz);
    end_segment(viz);
    viz->index++;
    return result;
}

void qi_viz_begin_events(qi_viz *viz)
{
    qi_pickle_end_list(&viz->pickle);
    qi_pickle_list(&viz->pickle, "device_traces");
    qi_pickle_list(&viz->pickle, NULL);
}

quire_result qi_viz_finish(qi_viz *viz)
{
    qi_pickle *pickle = &viz->pickle;
    qi_pickle_end_list(pickle);
    qi_pickle_end_list(pickle);
    qi_pickle_dict(pickle, "allocator_settings");
    qi_pickle_end_dict(pickle);
    qi_pickle_list(pickle, "external_annotations");
    qi_pickle_end_list(pickle);
    qi_pickle_end_dict(pickle);
    return qi_pickle_finish(pickle);
}

/* The result of the memories of a device so far. */
typedef struct device_walk {
    qi_viz viz;
    quire_result result;
} device_walk;

static bool write_memory_of_device(void *user, quire_memory *memory)
{
    device_walk *walk = user;
    walk->result = qi_viz_write_memory(&walk->viz, memory);
    return !walk->result && !walk->viz.pickle.writer.failed;
}

quire_result quire_memory_write_memory_viz(const quire_memory *memory, quire_sink sink, void *user)
{
    qi_viz viz;
    if (!memory || !sink)
        return qi_fail_null("quire_memory_write_memory_viz", !memory ? "memory" : "sink");
    qi_viz_begin(&viz, sink, user);
    quire_result result = qi_viz_write_memory(&viz, memory);
    qi_viz_begin_events(&viz);
    return result ? result : qi_viz_finish(&viz);
}

quire_result quire_device_write_memory_viz(const quire_device *device, quire_sink sink, void *user)
{
    device_walk walk = {.result = QUIRE_SUCCESS};
    if (!device || !sink)
        return qi_fail_null("quire_device_write_memory_viz", !device ? "device" : "sink");
    qi_viz_begin(&walk.viz, sink, user);
    quire_result result = quire_device_walk(device, write_memory_of_device, &walk);
    if (!result)
        result = walk.result;
    qi_viz_begin_events(&walk.viz);
    return result ? result : qi_viz_finish(&walk.viz);
}
