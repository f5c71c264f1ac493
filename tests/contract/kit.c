/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kit.c - a pattern is computed from a key and the position of a byte, so that expected bytes need
 * not be kept. Also memories that suit any device, and pages without the core: see kit.h.
 */
#include "tests/contract/kit.h"

/* ---- kinds -------------------------------------------------------------------------------- */

bool kit_holds_contents(const contract_world *w, uint32_t kind)
{
    const quire_memory_flags special = QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED |
                                       QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED |
                                       QUIRE_OBJECTS_ONLY;
    quire_memory_flags flags = w->info.kinds[kind].flags;
    return flags && !(flags & special);
}

bool kit_grows(const contract_world *w, uint32_t kind)
{
    return w->info.limits.elastic_kinds >> kind & 1;
}

bool kit_has_growth(const contract_world *w)
{
    return kit_offers(w, QUIRE_BACKEND_ELASTIC);
}

bool kit_is_visible(const contract_world *w, uint32_t kind)
{
    return (w->info.kinds[kind].flags & QUIRE_HOST_VISIBLE) != 0;
}

bool kit_maps_elastic(const contract_world *w, uint32_t kind)
{
    return kit_is_visible(w, kind) && !w->info.limits.elastic_unmapped;
}

bool kit_is_coherent(const contract_world *w, uint32_t kind)
{
    return (w->info.kinds[kind].flags & QUIRE_HOST_COHERENT) != 0;
}

bool kit_offers(const contract_world *w, quire_backend_features feature)
{
    return (w->features & feature) != 0;
}

bool kit_is_for_objects(const contract_world *w, uint32_t kind)
{
    return (w->info.kinds[kind].flags & QUIRE_OBJECTS_ONLY) != 0;
}

bool kit_can_write(const contract_world *w, uint32_t kind)
{
    return kit_is_visible(w, kind) ||
           (kit_offers(w, QUIRE_BACKEND_COPY_TO_PAGE) && !kit_is_for_objects(w, kind));
}

bool kit_can_read(const contract_world *w, uint32_t kind)
{
    return kit_is_visible(w, kind) ||
           (kit_offers(w, QUIRE_BACKEND_COPY_FROM_PAGE) && !kit_is_for_objects(w, kind));
}

bool kit_can_both(const contract_world *w, uint32_t kind)
{
    return kit_can_write(w, kind) && kit_can_read(w, kind);
}

/* ---- memories ----------------------------------------------------------------------------- */

uint64_t kit_page_size(const contract_world *w)
{
    return kit_round_up(256 * KIB, w->info.limits.page_granularity);
}

uint64_t kit_largest_alignment(const contract_world *w, uint32_t kind)
{
    uint64_t heap = w->info.heaps[w->info.kinds[kind].heap].size, alignment = 2 * MIB;
    while (alignment > heap / 8)
        alignment /= 2;
    return alignment;
}

quire_memory *kit_memory(const contract_world *w, uint32_t kind, const quire_memory_options *more)
{
    quire_memory_options options = more ? *more : (quire_memory_options){0};
    quire_memory *memory = NULL;
    options.kind.mask = UINT32_C(1) << kind;
    if (!options.name)
        options.name = "contract";
    if (!options.fit.max_alignment)
        options.fit.max_alignment = kit_largest_alignment(w, kind);
    if (!options.pages.page_size)
        options.pages.page_size = kit_page_size(w);
    CHECK_OK(quire_memory_create(w->device, &options, &memory));
    return memory;
}

quire_allocation kit_allocate(quire_memory *memory, const quire_allocation_options *options)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate(memory, options, &allocation));
    return allocation;
}

quire_allocation_info kit_info(quire_memory *memory, quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, allocation, &info));
    return info;
}

quire_native kit_native(quire_memory *memory, quire_allocation allocation)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(memory, allocation, &native));
    return native;
}

quire_memory_stats kit_stats(quire_memory *memory)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    return stats;
}

void kit_end(quire_memory **memory)
{
    CHECK_OK(quire_memory_check(*memory));
    CHECK_EQ(kit_stats(*memory).allocation_count, 0);
    CHECK_OK(quire_memory_destroy(memory));
    CHECK(!*memory);
}

bool kit_is_aligned(const quire_native *native, uint64_t alignment)
{
    return (native->page.address + native->offset) % alignment == 0;
}

/* ---- patterns ----------------------------------------------------------------------------- */

static uint64_t pattern_word(uint64_t key, uint64_t index)
{
    test_random r = {key * UINT64_C(0x9E3779B97F4A7C15) + index};
    return random_next(&r);
}

void kit_fill(uint64_t key, uint64_t offset, void *bytes, uint64_t size)
{
    unsigned char *out = bytes;
    for (const uint64_t end = offset + size; offset < end;) {
        const uint64_t word = pattern_word(key, offset / 8), from = offset % 8;
        const uint64_t part = 8 - from < end - offset ? 8 - from : end - offset;
        if (part == 8) /* a store, where the compiler knows the size */
            memcpy(out, &word, 8);
        else
            memcpy(out, (const char *)&word + from, part);
        out += part;
        offset += part;
    }
}

void kit_expect(uint64_t key, uint64_t offset, const void *bytes, uint64_t size)
{
    static _Thread_local unsigned char expected[KIT_LONGEST];
    CHECK(size <= sizeof expected);
    kit_fill(key, offset, expected, size);
    if (!memcmp(bytes, expected, size))
        return;
    const unsigned char *found = bytes;
    uint64_t i = 0;
    while (found[i] == expected[i])
        i++;
    check_failed(__FILE__, __LINE__,
                 "byte %" PRIu64 " of pattern %" PRIu64 " is 0x%02x, not 0x%02x", offset + i, key,
                 found[i], expected[i]);
}

/*
 * Calls a function for the parts of an allocation that carry its pattern: all of it, or both ends.
 */
static uint64_t parts_of(uint64_t size, uint64_t starts[2])
{
    uint64_t part = size <= KIT_LONGEST ? size : KIT_LONGEST / 2;
    starts[0] = 0;
    starts[1] = size - part;
    return part;
}

void kit_write(quire_memory *memory, quire_allocation allocation, uint64_t size, uint64_t key)
{
    static _Thread_local unsigned char bytes[KIT_LONGEST];
    uint64_t starts[2], part = parts_of(size, starts);
    for (int i = 0; i < (starts[1] ? 2 : 1); i++) {
        kit_fill(key, starts[i], bytes, part);
        CHECK_OK(quire_write(memory, allocation, starts[i], bytes, part));
    }
}

void kit_read(quire_memory *memory, quire_allocation allocation, uint64_t size, uint64_t key)
{
    static _Thread_local unsigned char bytes[KIT_LONGEST];
    uint64_t starts[2], part = parts_of(size, starts);
    for (int i = 0; i < (starts[1] ? 2 : 1); i++) {
        memset(bytes, 0x5a, part);
        CHECK_OK(quire_read(memory, allocation, starts[i], bytes, part));
        kit_expect(key, starts[i], bytes, part);
    }
}

/* ---- pages without the core --------------------------------------------------------------- */

quire_result kit_page_try(const contract_world *w, const quire_page_request *request,
                          kit_page *page)
{
    *page = (kit_page){.kind = request->kind};
    quire_result result = w->table->page_create(w->state, request, &page->native);
    if (result || !kit_is_visible(w, request->kind) ||
        (request->max_size && !kit_maps_elastic(w, request->kind)))
        return result;
    void *pointer = NULL;
    CHECK_OK(w->table->map(w->state, &page->native, &pointer));
    CHECK(pointer);
    page->pointer = pointer;
    return QUIRE_SUCCESS;
}

kit_page kit_page_make(const contract_world *w, uint32_t kind, uint64_t size)
{
    kit_page page;
    quire_page_request request = {
        .kind = kind,
        .size = kit_round_up(size, w->info.limits.page_granularity),
        .alignment = w->info.limits.non_coherent_atom,
        .label = "contract",
    };
    CHECK_OK(kit_page_try(w, &request, &page));
    CHECK(page.native.size >= request.size);
    return page;
}

void kit_page_end(const contract_world *w, kit_page *page)
{
    if (page->pointer)
        w->table->unmap(w->state, &page->native);
    w->table->page_destroy(w->state, &page->native);
    *page = (kit_page){0};
}

/*
 * Copies through the table. A backend that does not support this kind must return UNSUPPORTED and
 * nothing else.
 */
static bool was_copied(quire_result result)
{
    if (result)
        CHECK_EQ(result, QUIRE_ERROR_UNSUPPORTED);
    return !result;
}

uint64_t kit_device_address(const contract_world *w, const quire_native_page *page)
{
    if (!kit_offers(w, QUIRE_BACKEND_DEVICE_ADDRESS))
        return 0;
    quire_result before = quire_last_result();
    uint64_t address = w->table->device_address(w->state, page, 0);
    CHECK_EQ(w->table->device_address(w->state, page, 0), address);
    CHECK_EQ(quire_last_result(), before);
    return address;
}

bool kit_look(const contract_world *w, const quire_native_page *page, uint64_t offset, void *data,
              uint64_t size)
{
    if (w->subject->look)
        return w->subject->look(w->opened.own, page, offset, data, size);
    return kit_offers(w, QUIRE_BACKEND_COPY_FROM_PAGE) &&
           was_copied(w->table->copy_from_page(w->state, page, offset, data, size));
}

bool kit_put(const contract_world *w, const quire_native_page *page, uint64_t offset,
             const void *data, uint64_t size)
{
    return kit_offers(w, QUIRE_BACKEND_COPY_TO_PAGE) &&
           was_copied(w->table->copy_to_page(w->state, page, offset, data, size));
}

typedef quire_result (*sync_function)(void *, const quire_native_page *, uint64_t, uint64_t);

static void sync_atoms(const contract_world *w, const kit_page *page, uint64_t offset,
                       uint64_t size, sync_function sync)
{
    if (kit_is_coherent(w, page->kind))
        return;
    uint64_t atom = w->info.limits.non_coherent_atom, begin = offset / atom * atom;
    uint64_t end = kit_round_up(offset + size, atom);
    end = end > page->native.size ? page->native.size : end;
    CHECK_OK(sync(w->state, &page->native, begin, end - begin));
}

void kit_page_flush(const contract_world *w, const kit_page *page, uint64_t offset, uint64_t size)
{
    sync_atoms(w, page, offset, size, w->table->flush);
}

void kit_page_invalidate(const contract_world *w, const kit_page *page, uint64_t offset,
                         uint64_t size)
{
    sync_atoms(w, page, offset, size, w->table->invalidate);
}

bool kit_page_write(const contract_world *w, const kit_page *page, uint64_t offset,
                    const void *data, uint64_t size)
{
    if (!page->pointer)
        return kit_put(w, &page->native, offset, data, size);
    memcpy(page->pointer + offset, data, size);
    kit_page_flush(w, page, offset, size);
    return true;
}

bool kit_page_read(const contract_world *w, const kit_page *page, uint64_t offset, void *data,
                   uint64_t size)
{
    if (!page->pointer)
        return kit_look(w, &page->native, offset, data, size);
    kit_page_invalidate(w, page, offset, size);
    memcpy(data, page->pointer + offset, size);
    return true;
}
