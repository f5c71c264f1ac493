/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * addresses.c - looks an address up in the table of starts, then by binary search in the arrays of
 * pages, then in the bitmap of the page.
 */
#include "src/core/find/addresses.h"

#include <string.h>

#include "src/base/result.h"
#include "src/core/checked.h"

quire_result qi_addresses_refuse(void)
{
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory to find allocations by address");
}

quire_result qi_addresses_create(quire_memory *memory)
{
    qi_addresses *a = qi_host_allocate(&memory->host, 1, sizeof *a);
    if (!a)
        return qi_addresses_refuse();
    qi_lock_init(&a->lock, "addresses", QI_RANK_ADDRESSES);
    for (int i = 0; i < QI_START_LOCKS; i++)
        qi_lock_init(&a->start_locks[i].lock, "page starts", QI_RANK_PAGE_STARTS);
    qi_starts_init(&a->starts);
    memory->addresses = a;
    memory->extras = QI_EXTRA_ADDRESS;
    return QUIRE_SUCCESS;
}

void qi_addresses_release(quire_memory *memory)
{
    qi_addresses *a = memory->addresses;
    if (!a)
        return;
    for (int i = 0; i < QI_ADDRESS_KINDS; i++)
        qi_host_release(&memory->host, a->spans[i], a->capacity, sizeof *a->spans[i]);
    qi_starts_finish(&a->starts, &memory->host);
    qi_host_release(&memory->host, a, 1, sizeof *a);
    memory->addresses = NULL;
}

/* ---- the arrays of pages: functions require their lock ------------------------------------ */

/* Returns how many spans begin at or before an address. */
static uint32_t count_up_to(const qi_addresses *a, int kind, uint64_t address)
{
    uint32_t low = 0, high = a->span_counts[kind];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (a->spans[kind][middle].first <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sets `reach` from an index on. */
static void update_reach(const qi_addresses *a, int kind, uint32_t from)
{
    qi_page_span *spans = a->spans[kind];
    for (uint32_t i = from; i < a->span_counts[kind]; i++) {
        spans[i].reach = spans[i].first + (spans[i].page->size - 1);
        if (i)
            qi_raise(&spans[i].reach, spans[i - 1].reach);
    }
}

/* The arrays have room for every page. */
static void insert_span(qi_addresses *a, int kind, qi_page_addresses *page)
{
    const uint64_t first = page->addresses[kind];
    uint32_t at = count_up_to(a, kind, first);
    qi_page_span *spans = a->spans[kind];
    memmove(&spans[at + 1], &spans[at], (a->span_counts[kind]++ - at) * sizeof *spans);
    spans[at] = (qi_page_span){.first = first, .page = page};
    update_reach(a, kind, at);
}

/* Does nothing if the page has no address of the kind. */
static void remove_span(qi_addresses *a, int kind, const qi_page_addresses *page)
{
    qi_page_span *spans = a->spans[kind];
    uint32_t at = count_up_to(a, kind, page->addresses[kind]);
    while (at > 0 && spans[at - 1].page != page && spans[at - 1].first == page->addresses[kind])
        at--;
    if (!at || spans[at - 1].page != page)
        return;
    memmove(&spans[at - 1], &spans[at], (a->span_counts[kind]-- - at) * sizeof *spans);
    update_reach(a, kind, at - 1);
}

/* Returns false if host memory is exhausted. */
static bool make_room(qi_addresses *a, qi_host *host)
{
    if (a->pages < a->capacity)
        return true;
    uint32_t capacity = a->capacity ? 2 * a->capacity : 8;
    qi_page_span *larger[QI_ADDRESS_KINDS];
    for (int i = 0; i < QI_ADDRESS_KINDS; i++) {
        larger[i] = qi_host_allocate(host, capacity, sizeof *larger[i]);
        if (!larger[i]) {
            if (i)
                qi_host_release(host, larger[0], capacity, sizeof *larger[0]);
            return false;
        }
    }
    for (int i = 0; i < QI_ADDRESS_KINDS; i++) {
        if (a->span_counts[i])
            memcpy(larger[i], a->spans[i], a->span_counts[i] * sizeof *larger[i]);
        qi_host_release(host, a->spans[i], a->capacity, sizeof *a->spans[i]);
        a->spans[i] = larger[i];
    }
    a->capacity = capacity;
    return true;
}

/* ---- pages -------------------------------------------------------------------------------- */

/* The bitmap of a shared page has at most 2^32 - 1 bits. */
static quire_result check_granules(const quire_memory *memory, const qi_page *page, uint64_t size)
{
    if (page->dedicated || page->elastic || size / memory->granule < UINT32_MAX)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "find_by_address: a page of %b has more than 2^32 granules of %u byte%s",
                        size, memory->granule);
}

quire_result qi_addresses_enter_page(quire_memory *memory, qi_page *page, uint64_t device)
{
    qi_addresses *a = memory->addresses;
    if (!a)
        return QUIRE_SUCCESS;
    quire_result result = check_granules(memory, page, page->native.native.size);
    if (result)
        return result;
    qi_page_addresses *made = qi_page_addresses_create(memory, page, device);
    if (!made)
        return qi_addresses_refuse();
    made->lock = &a->start_locks[page->number % QI_START_LOCKS].lock;
    qi_lock_acquire(&a->lock);
    bool has_room = make_room(a, &memory->host);
    a->pages += has_room;
    /* if device and host have one address, it is in the first array only */
    for (int i = 0; has_room && i < QI_ADDRESS_KINDS; i++)
        if (made->addresses[i] && (!i || made->addresses[i] != made->addresses[0]))
            insert_span(a, i, made);
    qi_lock_release(&a->lock);
    if (!has_room) {
        qi_page_addresses_release(made, &memory->host);
        return qi_addresses_refuse();
    }
    page->addresses = made;
    return QUIRE_SUCCESS;
}

void qi_addresses_leave_page(quire_memory *memory, qi_page *page)
{
    qi_addresses *a = memory->addresses;
    if (!page->addresses)
        return;
    qi_lock_acquire(&a->lock);
    for (int i = 0; i < QI_ADDRESS_KINDS; i++)
        remove_span(a, i, page->addresses);
    a->pages--;
    qi_lock_release(&a->lock);
    qi_page_addresses_release(page->addresses, &memory->host);
    page->addresses = NULL;
}

quire_result qi_addresses_cover(quire_memory *memory, const qi_page *page, uint64_t offset,
                                uint64_t size)
{
    if (!page->addresses || qi_page_addresses_cover(page->addresses, &memory->host, offset, size))
        return QUIRE_SUCCESS;
    return qi_addresses_refuse();
}

void qi_addresses_uncover(quire_memory *memory, const qi_page *page, uint64_t offset, uint64_t size)
{
    if (page->addresses)
        qi_page_addresses_uncover(page->addresses, &memory->host, offset, size);
}

/* ---- allocations -------------------------------------------------------------------------- */

bool qi_addresses_reserve(quire_memory *memory)
{
    return qi_starts_reserve(&memory->addresses->starts, &memory->host);
}

/* Adds the handle of a slot at the place of another one, or the same. */
static bool add_at(quire_memory *memory, uint32_t slot, uint32_t place, bool visible)
{
    uint64_t address = qi_addresses_start_of(memory, place);
    uint64_t id = qi_slot_future_handle(&memory->slots, slot).id;
    if (!address)
        return true;
    if (!qi_starts_put(&memory->addresses->starts, &memory->host, address, id, visible))
        return false;
    qi_page_addresses_add(qi_memory_page(memory, place)->addresses,
                          qi_memory_slot(memory, place)->offset, id);
    return true;
}

static void remove_at(quire_memory *memory, uint32_t slot, uint32_t place)
{
    uint64_t address = qi_addresses_start_of(memory, place);
    if (!address)
        return;
    qi_page_addresses_remove(qi_memory_page(memory, place)->addresses,
                             qi_memory_slot(memory, place)->offset);
    qi_starts_remove(&memory->addresses->starts, address, slot);
}

bool qi_addresses_add(quire_memory *memory, uint32_t slot, bool visible)
{
    return add_at(memory, slot, slot, visible);
}

bool qi_addresses_enter_move(quire_memory *memory, uint32_t source, uint32_t target)
{
    return add_at(memory, source, target, false);
}

void qi_addresses_end_move(quire_memory *memory, uint32_t source, uint32_t target, bool has_moved)
{
    remove_at(memory, source, has_moved ? source : target);
    if (has_moved)
        qi_ignore(add_at(memory, source, target, true) ? QUIRE_SUCCESS
                                                       : QUIRE_ERROR_OUT_OF_HOST_MEMORY);
}

void qi_addresses_hide(quire_memory *memory, uint32_t slot)
{
    uint64_t address = qi_addresses_start_of(memory, slot);
    if (address)
        qi_starts_hide(&memory->addresses->starts, address, slot);
}

void qi_addresses_remove(quire_memory *memory, uint32_t slot)
{
    remove_at(memory, slot, slot);
}

/*
 * The allocation is shown while it is in use, before it is committed. Afterwards another thread may
 * free it and hide it at any time. A commit that fails then finds it freed, or committed by another
 * thread.
 */
quire_result qi_addresses_commit(quire_memory *memory, quire_allocation allocation)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_RESERVED, &slot);
    if (result)
        return result;
    uint64_t address = qi_addresses_start_of(memory, slot);
    if (address)
        qi_starts_show(&memory->addresses->starts, address, allocation.id);
    qi_slot_end_use(&memory->slots, slot);
    return qi_slot_commit(&memory->slots, allocation);
}

static bool has_device_address(qi_addresses *a, const qi_page_addresses *page)
{
    qi_lock_acquire(&a->lock);
    bool has = page->addresses[QI_ADDRESS_OF_DEVICE] != 0;
    qi_lock_release(&a->lock);
    return has;
}

/* The page keeps the first address: the buffers of a page agree about it. */
static void set_device_address(qi_addresses *a, qi_page_addresses *page, uint64_t device)
{
    qi_lock_acquire(&a->lock);
    if (!page->addresses[QI_ADDRESS_OF_DEVICE]) {
        qi_page_addresses_set_device(page, device);
        if (device != page->addresses[QI_ADDRESS_OF_HOST])
            insert_span(a, QI_ADDRESS_OF_DEVICE, page);
    }
    qi_lock_release(&a->lock);
}

void qi_addresses_learn(quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    bool is_known = record->object == QUIRE_OBJECT_BUFFER && record->usage &&
                    qi_slot_native(record) && !page->native.native.address;
    if (is_known && !has_device_address(memory->addresses, page->addresses)) {
        uint64_t address = qi_device_address(memory->device, &memory->calls, &page->native,
                                             qi_slot_native(record));
        if (address > record->offset) /* 0: the backend reports none */
            set_device_address(memory->addresses, page->addresses, address - record->offset);
    }
}

/* ---- looking up --------------------------------------------------------------------------- */

/* Requires the lock of the page. Looks for a live allocation that starts in the granule at an
   offset. */
static bool find_start(quire_memory *memory, const qi_page_addresses *page, uint64_t *offset,
                       uint64_t *id)
{
    const uint64_t end = *offset + page->granule, step = qi_page_addresses_step(page);
    const uint64_t base = qi_atomic_load_u64(&page->base);
    for (; *offset < end; *offset += step) {
        *id = qi_starts_find(&memory->addresses->starts, base + *offset);
        if (*id)
            return true;
    }
    return false;
}

/* Requires the lock of the page. Looks for the live allocation that starts at or before an offset,
   with no other one in between. */
static bool find_before(quire_memory *memory, const qi_page_addresses *page, uint64_t offset,
                        uint64_t *start, uint64_t *id)
{
    if (qi_page_addresses_is_shared(page))
        return qi_page_addresses_before(page, offset, start) && find_start(memory, page, start, id);
    *start = page->only_start;
    *id = page->only_id;
    return *id && qi_slot_is_live(&memory->slots, *id);
}

/* In the child of a fork, a thread that does not exist there may have been freeing it. */
static bool is_current(const quire_memory *memory, uint64_t id)
{
    return !memory->has_orphans || qi_slot_is_live(&memory->slots, id);
}

/* Requires the lock of the arrays. Looks for the allocation with a byte of a page. */
static bool find_in_page(quire_memory *memory, const qi_page_addresses *page, uint64_t offset,
                         qi_found *found)
{
    uint64_t start = 0, id = 0;
    qi_lock_acquire(page->lock);
    /* a start that is set keeps the record as it is */
    bool is_found = find_before(memory, page, offset, &start, &id) && is_current(memory, id) &&
                    offset >= start &&
                    offset - start < qi_slot_extent(qi_memory_slot(memory, qi_handle_slot(id)));
    qi_lock_release(page->lock);
    if (is_found)
        *found = (qi_found){{id}, offset - start};
    return is_found;
}

/* Several pages have an address only if the program adopted the same bytes several times, or a part
   of them. */
static bool find_in_pages(quire_memory *memory, uint64_t address, qi_found *found)
{
    qi_addresses *a = memory->addresses;
    bool is_found = false;
    qi_lock_acquire(&a->lock);
    for (int kind = 0; kind < QI_ADDRESS_KINDS && !is_found; kind++) {
        const qi_page_span *spans = a->spans[kind];
        uint32_t i = count_up_to(a, kind, address);
        while (i-- > 0 && address <= spans[i].reach && !is_found)
            is_found = address - spans[i].first < spans[i].page->size &&
                       find_in_page(memory, spans[i].page, address - spans[i].first, found);
    }
    qi_lock_release(&a->lock);
    return is_found;
}

bool qi_addresses_find(quire_memory *memory, uint64_t address, qi_found *found)
{
    *found = (qi_found){.offset = 0};
    return qi_addresses_find_start(memory, address, &found->allocation) ||
           find_in_pages(memory, address, found);
}

void qi_addresses_each_lock(qi_addresses *addresses, qi_lock_rank rank,
                            void (*apply)(qi_lock *lock))
{
    if (rank == QI_RANK_ADDRESSES)
        apply(&addresses->lock);
    for (int i = 0; rank == QI_RANK_PAGE_STARTS && i < QI_START_LOCKS; i++)
        apply(&addresses->start_locks[i].lock);
    for (int i = 0; rank == QI_RANK_STARTS && i < QI_STRIPE_COUNT; i++)
        apply(&addresses->starts.stripes[i].lock);
}

/* ---- the check ---------------------------------------------------------------------------- */

/* Whether a start in a shared page is noted in the page's bitmap. */
static bool is_noted(const qi_page_addresses *page, uint64_t offset)
{
    uint64_t start = 0;
    if (!qi_page_addresses_is_shared(page))
        return true;
    qi_lock_acquire(page->lock);
    bool is_there = qi_page_addresses_before(page, offset, &start);
    qi_lock_release(page->lock);
    return is_there && offset - start < page->granule;
}

/* An allocation is in the tables as long as its slot is live: its free claims the slot first. */
uint32_t qi_addresses_missing(quire_memory *memory)
{
    for (uint32_t slot = 0; slot < qi_slots_top(&memory->slots); slot++) {
        quire_allocation allocation = qi_slot_public_handle(&memory->slots, slot);
        if (!allocation.id || !qi_slot_is_live(&memory->slots, allocation.id))
            continue;
        const qi_page_addresses *page = qi_memory_page(memory, slot)->addresses;
        uint64_t address = qi_addresses_start_of(memory, slot);
        uint64_t offset = qi_memory_slot(memory, slot)->offset;
        bool is_there =
            !address || page->is_late ||
            (qi_starts_has(&memory->addresses->starts, address, slot) && is_noted(page, offset));
        if (!is_there && qi_slot_is_live(&memory->slots, allocation.id))
            return slot;
    }
    return QI_NO_SLOT;
}

/* ---- look-ups of the public functions ----------------------------------------------------- */

static quire_result refuse_address(const char *what, const char *name, uint64_t address)
{
    return qi_fail_text(QUIRE_ERROR_OUT_OF_RANGE,
                        "address 0x%llx belongs to no live allocation of %s '%s'",
                        (unsigned long long)address, what, name);
}

static quire_result find(quire_memory *memory, uint64_t address, qi_found *found)
{
    if (!memory->addresses)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' was created without quire_memory_options.find_by_address",
                            memory->name);
    return qi_addresses_find(memory, address, found)
               ? QUIRE_SUCCESS
               : refuse_address("memory", memory->name, address);
}

quire_result qi_find(quire_memory *memory, uint64_t address, quire_allocation *allocation)
{
    qi_found found;
    quire_result result = find(memory, address, &found);
    if (!result)
        *allocation = found.allocation;
    return result;
}

quire_result qi_find_start(quire_memory *memory, uint64_t address, quire_allocation *allocation)
{
    qi_found found;
    if (memory->addresses && qi_addresses_find_start(memory, address, allocation))
        return QUIRE_SUCCESS;
    quire_result result = find(memory, address, &found);
    if (result)
        return result;
    if (found.offset)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "address 0x%llx lies %llu bytes inside an allocation that starts at "
                            "0x%llx",
                            (unsigned long long)address, (unsigned long long)found.offset,
                            (unsigned long long)(address - found.offset));
    *allocation = found.allocation;
    return QUIRE_SUCCESS;
}

/* The lock of the device keeps its memories. */
quire_result qi_find_in_device(quire_device *device, uint64_t address, quire_memory **memory,
                               quire_allocation *allocation)
{
    qi_found found = {.offset = 0};
    bool is_any = false, is_found = false;
    qi_lock_acquire(&device->lock);
    quire_memory *m = device->memories;
    for (; m; m = m->next_of_device) {
        is_any |= m->addresses != NULL;
        is_found = m->addresses && qi_addresses_find(m, address, &found);
        if (is_found)
            break;
    }
    qi_lock_release(&device->lock);
    if (!is_any)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "no memory of the device has quire_memory_options.find_by_address");
    if (!is_found)
        return refuse_address("device", device->info.name, address);
    *memory = m;
    *allocation = found.allocation;
    return QUIRE_SUCCESS;
}
