/*
 * place.c - placing ranges in the pages of a memory and giving them back (see place.h).
 *
 * The order of an allocation: slot and range under one hold of the lock - if no range fits, a page
 * is made without the lock and the request placed in it before anybody else can - if no page can be
 * had, one full pass over the space - the refusal, with its numbers.
 */
#include "src/memory/place.h"

#include <stdio.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/memory/access.h"
#include "src/memory/policy.h"
#include "src/space/fit.h"

quire_result qi_wish_check(const quire_memory *memory, const qi_wish *wish)
{
    if (!wish->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an allocation of size 0 is asked for");
    if (!qi_is_power_of_two(wish->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            wish->alignment);
    if (wish->alignment > memory->largest_alignment)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "alignment %llu is above the largest of memory '%s', %llu",
                            (unsigned long long)wish->alignment, memory->name,
                            (unsigned long long)memory->largest_alignment);
    if (wish->name && strlen(wish->name) > QUIRE_LONGEST_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u bytes: %u are allowed",
                            strlen(wish->name), QUIRE_LONGEST_NAME);
    if (wish->host_access && !(memory->flags & QUIRE_HOST_VISIBLE))
        return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE,
                            "host access is asked for, and memory '%s' of kind %u is not "
                            "host-visible (%s)",
                            memory->name, memory->kind, qi_flags(memory->flags).text);
    return QUIRE_SUCCESS;
}

/* ---- figures ------------------------------------------------------------------------------ */

static void count_in(quire_memory *memory, qi_page *page, const qi_slot *slot)
{
    quire_memory_stats *stats = &memory->stats;
    uint64_t held = slot->size + slot->left_padding;
    stats->live_bytes += held;
    stats->requested_bytes += slot->requested;
    stats->allocation_count++;
    stats->allocations++;
    qi_raise(&stats->peak_live_bytes, stats->live_bytes);
    qi_raise(&stats->peak_requested_bytes, stats->requested_bytes);
    qi_raise(&stats->peak_allocation_count, stats->allocation_count);
    qi_page_add_live(memory, page, held);
}

static void count_out(quire_memory *memory, qi_page *page, const qi_slot *slot)
{
    quire_memory_stats *stats = &memory->stats;
    uint64_t held = slot->size + slot->left_padding;
    stats->live_bytes -= held;
    stats->requested_bytes -= slot->requested;
    stats->allocation_count--;
    stats->frees++;
    qi_page_remove_live(memory, page, held);
}

/* ---- placing ------------------------------------------------------------------------------ */

/* A page made on the way, for the log. */
typedef struct made {
    uint64_t size; /* 0: none */
    uint32_t number;
} made;

/* What the parts of placing hand to each other. */
typedef struct placing {
    const qi_wish *wish;
    uint64_t size; /* with padding, size granularity and atom */
    uint64_t alignment;
    qi_extra *extra; /* ready to be put into the slot, or NULL */
    made made;
    uint64_t turn; /* of the first refusal over budget: see qi_page_await_change */
} placing;

static void fill_record(qi_slot *record, const placing *p, const qi_page *page)
{
    record->requested = p->wish->size;
    record->user_data = p->wish->user_data;
    record->extra = p->extra;
    record->page = page->number;
}

/* With the lock: takes a slot and a range of the shared pages. */
static quire_result place_shared(quire_memory *memory, const placing *p, uint32_t how,
                                 uint32_t *slot)
{
    quire_result result = qi_slot_take(&memory->slots, &memory->host, slot);
    if (result)
        return result;
    quire_placement at;
    result = memory->space->allocate_range(memory->space, p->size, p->alignment, *slot, how, &at);
    if (result) {
        qi_slot_give(&memory->slots, *slot);
        return result;
    }
    qi_page *page = qi_page_of_region(&memory->pages, at.region);
    qi_slot *record = qi_memory_slot(memory, *slot);
    fill_record(record, p, page);
    record->offset = at.offset + page->skipped;
    record->left_padding = at.left_padding;
    record->size = at.size;
    record->range = at.range;
    count_in(memory, page, record);
    return QUIRE_SUCCESS;
}

/* With the lock: gives the request the whole of a page made for it. */
static quire_result place_dedicated(quire_memory *memory, const placing *p, qi_page *page,
                                    uint32_t *slot)
{
    quire_result result = qi_slot_take(&memory->slots, &memory->host, slot);
    if (result)
        return result;
    qi_slot *record = qi_memory_slot(memory, *slot);
    fill_record(record, p, page);
    record->left_padding = qi_padding(page->native.native.address, p->alignment);
    record->offset = record->left_padding;
    record->size = p->size;
    record->dedicated = true;
    page->slot = *slot;
    count_in(memory, page, record);
    return QUIRE_SUCCESS;
}

/* With the lock, given up meanwhile: makes a page for the request and places it there. */
static quire_result place_in_new_page(quire_memory *memory, placing *p, bool dedicated,
                                      uint32_t *slot)
{
    qi_page *page = NULL;
    quire_result result = qi_page_make(memory, p->size, p->alignment, dedicated, &page);
    if (result)
        return result;
    p->made = (made){.size = page->native.native.size, .number = page->number};
    result =
        dedicated ? place_dedicated(memory, p, page, slot) : place_shared(memory, p, QI_TRY, slot);
    if (result == QUIRE_ERROR_NO_SPACE) /* holes that fit badly can hide the page from the bounds */
        result = place_shared(memory, p, QI_EXHAUSTIVE, slot);
    if (result) {
        qi_page *leaving = qi_page_take(memory, page);
        qi_lock_release(&memory->lock);
        qi_pages_destroy(memory, leaving);
        qi_lock_acquire(&memory->lock);
    } else if (!dedicated) {
        memory->pages.last_size = page->policy_size;
    }
    return result;
}

/* Whether no page could be had, so that only what is there can help. */
static bool is_want_of_pages(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_TOO_MANY_PAGES ||
           result == QUIRE_ERROR_OUT_OF_RANGE || result == QUIRE_ERROR_OVER_BUDGET;
}

/* With the lock, given up meanwhile: no range fits, so that a page is needed. */
static quire_result find_with_page(quire_memory *memory, placing *p, uint32_t *slot)
{
    uint64_t room = 0;
    if (qi_add_overflows(p->size, p->alignment, &room))
        room = UINT64_MAX;
    const qi_page *joined = NULL;
    quire_result result;
    do {
        if (!qi_page_join(memory, room, &joined)) {
            result = place_in_new_page(memory, p, false, slot);
            if (!qi_page_await_change(memory, result, &p->turn))
                break;
        }
        result = place_shared(memory, p, QI_TRY, slot);
    } while (result == QUIRE_ERROR_NO_SPACE);
    if (!is_want_of_pages(result))
        return result;
    qi_error error = qi_error_save();
    if (!place_shared(memory, p, QI_EXHAUSTIVE, slot))
        return QUIRE_SUCCESS;
    qi_error_restore(&error);
    return result;
}

/* With the lock, given up meanwhile. */
static quire_result find_dedicated(quire_memory *memory, placing *p, uint32_t *slot)
{
    quire_result result;
    do {
        result = place_in_new_page(memory, p, true, slot);
    } while (qi_page_await_change(memory, result, &p->turn));
    return result;
}

/* With the lock, given up meanwhile. What failed on the way to a success is not told. */
static quire_result find(quire_memory *memory, placing *p, bool dedicated, uint32_t *slot)
{
    quire_result result = dedicated ? QUIRE_ERROR_NO_SPACE : place_shared(memory, p, QI_TRY, slot);
    if (result != QUIRE_ERROR_NO_SPACE)
        return result;
    qi_error before = qi_error_save();
    result = dedicated ? find_dedicated(memory, p, slot) : find_with_page(memory, p, slot);
    if (!result)
        qi_error_restore(&before);
    return result;
}

/*
 * With the lock, given up meanwhile: the same within the limits of the request's name. They are
 * looked at before a page is made in vain, and hold for what is really held, once that is known.
 */
static quire_result find_by_name(quire_memory *memory, placing *p, bool dedicated, uint32_t *slot)
{
    if (!p->wish->name)
        return find(memory, p, dedicated, slot);
    quire_result result = qi_names_admit(&memory->names, p->wish->name, p->size);
    if (!result)
        result = find(memory, p, dedicated, slot);
    if (result)
        return result;
    qi_slot *record = qi_memory_slot(memory, *slot);
    result = qi_names_replace(&memory->names, NULL, p->wish->name, record);
    if (result) {
        record->extra = NULL; /* it has no name where it is not counted */
        qi_lock_release(&memory->lock);
        qi_place_undo(memory, *slot);
        qi_lock_acquire(&memory->lock);
    }
    return result;
}

static void count_failure(quire_memory *memory)
{
    qi_lock_acquire(&memory->lock);
    memory->stats.failures++;
    qi_lock_release(&memory->lock);
}

/* The refusal: what was asked, what is there, and what the last attempt said. */
static quire_result report(quire_memory *memory, const placing *p, quire_result result)
{
    char why[QI_ERROR_TEXT / 2];
    snprintf(why, sizeof why, "%s", quire_last_error());
    int64_t native = quire_last_native_code();
    qi_lock_acquire(&memory->lock);
    memory->stats.failures++;
    quire_space_stats space;
    qi_ignore(quire_space_get_stats(memory->space, &space));
    uint64_t pages = memory->stats.page_count;
    qi_lock_release(&memory->lock);
    return quire_backend_fail(
        result, native,
        "memory '%s' (kind %u, %s): %s at alignment %llu asked; pages: %llu, largest free range %s "
        "of %s free; %s",
        memory->name, memory->kind, qi_flags(memory->flags).text, qi_bytes(p->wish->size).text,
        (unsigned long long)p->alignment, (unsigned long long)pages,
        qi_bytes(space.largest_free).text, qi_bytes(space.free_bytes).text, why);
}

static quire_result prepare(const quire_memory *memory, const qi_wish *wish, placing *p)
{
    uint64_t held = wish->held > wish->size ? wish->held : wish->size;
    *p = (placing){.wish = wish, .alignment = wish->alignment};
    if (memory->atom > p->alignment)
        p->alignment = memory->atom;
    if (qi_policy_size_overflows(&memory->policy, held, &p->size) ||
        qi_align_up_overflows(p->size, memory->atom, &p->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%u bytes asked: more than can be counted once rounded up", held);
    return QUIRE_SUCCESS;
}

void qi_extra_release(quire_memory *memory, qi_extra *extra)
{
    if (extra)
        qi_host_release_text(&memory->host, extra->name);
    qi_host_release(&memory->host, extra, 1, sizeof *extra);
}

quire_result qi_extra_make(quire_memory *memory, const char *name, quire_object object,
                           qi_extra **extra)
{
    *extra = NULL;
    if (!name && object == QUIRE_OBJECT_NONE)
        return QUIRE_SUCCESS;
    *extra = qi_host_allocate(&memory->host, 1, sizeof **extra);
    if (*extra && name)
        (*extra)->name = qi_host_copy_text(&memory->host, name);
    if (*extra && (!name || (*extra)->name)) {
        (*extra)->object = object;
        return QUIRE_SUCCESS;
    }
    qi_extra_release(memory, *extra);
    *extra = NULL;
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for an allocation's name");
}

static bool wants_dedicated(const quire_memory *memory, const qi_wish *wish)
{
    const quire_page_policy *policy = &memory->policy;
    bool is_one_page = memory->space->fit->most_regions != 0; /* which nothing is to outgrow */
    return wish->dedicated || policy->dedicated == QUIRE_DEDICATED_ALWAYS ||
           (is_one_page && wish->size > policy->page_size) ||
           (policy->dedicated_threshold && wish->size >= policy->dedicated_threshold);
}

quire_result qi_place(quire_memory *memory, const qi_wish *wish, uint32_t *slot)
{
    placing p;
    bool dedicated = wants_dedicated(memory, wish);
    quire_result result = prepare(memory, wish, &p);
    if (!result)
        result = qi_extra_make(memory, wish->name, wish->object, &p.extra);
    if (!result) {
        qi_lock_acquire(&memory->lock);
        result = find_by_name(memory, &p, dedicated, slot);
        qi_lock_release(&memory->lock);
        if (p.made.size)
            qi_log(&memory->device->log, QUIRE_LOG_DEBUG, "memory '%s': page %u made, %s%s",
                   memory->name, p.made.number, qi_bytes(p.made.size).text,
                   dedicated ? ", dedicated" : "");
    }
    if (result) {
        qi_extra_release(memory, p.extra);
        return report(memory, &p, result);
    }
    if (wish->zero)
        result = qi_access_fill_zero(memory, *slot);
    if (result) {
        qi_place_undo(memory, *slot);
        count_failure(memory);
    }
    return result;
}

/* Nobody changes the extra part any more, but a walk may be reading the name. */
static qi_extra *detach_extra(quire_memory *memory, qi_slot *record)
{
    qi_extra *extra = record->extra;
    if (!extra)
        return NULL;
    qi_lock_acquire(&memory->lock);
    qi_ignore(qi_names_replace(&memory->names, extra->name, NULL, record)); /* takes nothing */
    record->extra = NULL;
    qi_lock_release(&memory->lock);
    return extra;
}

void qi_place_release(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_extra *extra = detach_extra(memory, record);
    if (extra && extra->native)
        qi_device_object_destroy(memory->device, &memory->calls, extra->object, extra->native);
    qi_extra_release(memory, extra);
    qi_page *leaving = NULL;
    qi_lock_acquire(&memory->lock);
    qi_page *page = qi_memory_page(memory, slot);
    count_out(memory, page, record);
    if (record->dedicated)
        leaving = qi_page_take(memory, page);
    else
        qi_ignore(quire_space_free(memory->space, record->range)); /* ours, and live until here */
    qi_slot_give(&memory->slots, slot);
    qi_lock_release(&memory->lock);
    qi_pages_destroy(memory, leaving);
}

void qi_place_undo(quire_memory *memory, uint32_t slot)
{
    qi_place_release(memory, slot);
    qi_lock_acquire(&memory->lock);
    memory->stats.allocations--;
    memory->stats.frees--;
    qi_lock_release(&memory->lock);
}
