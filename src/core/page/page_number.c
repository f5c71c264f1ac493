/*
 * page_number.c - assigns page numbers, lowest first.
 */
#include "src/core/page/page_number.h"

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/page/page_attempt.h"
#include "src/core/page/page_history.h"
#include "src/core/page/page_size.h"
#include "src/space/space.h"

/*
 * Returns the link to the page with the lowest number below `below` among those that this call has
 * destroyed, or NULL.
 */
static qi_page **find_gone(qi_page_events *events, uint32_t below)
{
    qi_page **found = NULL;
    for (qi_page **link = &events->gone; *link && !events->renewed.size; link = &(*link)->next)
        if ((*link)->number < below) {
            below = (*link)->number;
            found = link;
        }
    return found;
}

/*
 * Requires the lock of the pages. Returns the lowest free number. The number of a page that this
 * call has destroyed is free for the page it makes, because its events are reported in order.
 */
static uint32_t find_number(qi_pages *pages, qi_page_events *events)
{
    uint32_t number = pages->free_hint;
    while (number < pages->top && qi_page_at(pages, number)->phase != QI_PAGE_NONE)
        number++;
    qi_page **gone = find_gone(events, number);
    if (!gone) {
        pages->free_hint = number + (number < pages->top);
        return number;
    }
    number = (*gone)->number;
    events->renewed = (qi_page_change){.size = (*gone)->native.size, .number = number};
    *gone = (*gone)->next;
    return number;
}

/*
 * Requires the lock of the pages. Assigns the lowest free number and a record in phase MAKING.
 * Fails with TOO_MANY_PAGES or OUT_OF_HOST_MEMORY.
 */
static quire_result take_number(quire_memory *memory, qi_page_events *events, qi_page **out)
{
    qi_pages *pages = &memory->pages;
    uint32_t max = memory->policy.max_pages;
    if (max && pages->in_use >= max)
        return qi_fail_naming(QUIRE_ERROR_TOO_MANY_PAGES,
                              "memory '%t' has %u page%s, the maximum of its policy", memory->name,
                              pages->in_use);
    uint32_t number = find_number(pages, events);
    if (!qi_table_ensure(&pages->records, &memory->host, number))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for page record %u",
                            number);
    pages->top += number == pages->top;
    pages->in_use++;
    *out = qi_page_at(pages, number);
    **out = (qi_page){
        .number = number, .phase = QI_PAGE_MAKING, .own.page = *out, .owner = qi_thread_self()};
    (*out)->tally = &(*out)->own;
    return QUIRE_SUCCESS;
}

uint32_t qi_page_max_shared(const qi_shard *shard)
{
    return shard->memory->address_space ? 1 : shard->space->fit->max_regions;
}

/* Requires the shard's lock. Whether the fit takes no further region, pages being made included. */
static bool has_all_shared(const qi_shard *shard)
{
    uint32_t max = qi_page_max_shared(shard), count = shard->shared;
    for (const qi_page *page = shard->memory->pages.being_made; page; page = page->next)
        count += !page->dedicated && page->shard == shard;
    return max && count >= max;
}

quire_result qi_page_begin(qi_shard *shard, const qi_page_plan *p, qi_page_events *events,
                           qi_page **out)
{
    quire_memory *memory = shard->memory;
    uint64_t room = qi_space_line_max(shard->space);
    if (qi_atomic_load_u32(&memory->is_ending))
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE, "memory '%s' is being destroyed",
                            memory->name);
    if (!p->dedicated && has_all_shared(shard))
        return qi_fail_naming(QUIRE_ERROR_TOO_MANY_PAGES,
                              "memory '%t' has %u shared page and cannot have another",
                              memory->name, qi_page_max_shared(shard));
    if (!p->dedicated && p->needed > room)
        return qi_fail_with(
            QUIRE_ERROR_OUT_OF_RANGE,
            "a page of %b exceeds the offsets of a memory with granule %u: %b are left", p->needed,
            memory->granule, room);
    quire_result result = take_number(memory, events, out);
    if (result)
        return result;
    qi_page *page = *out;
    page->shard = shard;
    page->dedicated = p->dedicated;
    page->tied = p->tie != NULL;
    page->policy_size = p->dedicated ? 0 : qi_page_policy_size(shard);
    page->wanted = qi_page_wanted_size(shard, page, p->size, p->needed);
    page->wanted = qi_page_attempt_size(memory, page->wanted, p->needed, p->most, &page->reduced);
    page->to_join = p->dedicated ? 0 : page->wanted - p->needed;
    page->turn = ++memory->pages.turns;
    page->next = memory->pages.being_made;
    memory->pages.being_made = page;
    qi_page_history_change(page, 0, page->wanted);
    qi_transit_begin();
    return QUIRE_SUCCESS;
}

/* Requires the lock of the pages. The number of a page that was not made gets its old state
   back. */
static void give_number(qi_pages *pages, qi_page *page, qi_page_events *events)
{
    pages->in_use--;
    page->phase = QI_PAGE_GONE;
    qi_page_history_change(page, page->wanted, 0);
    if (!qi_page_events_keep_number(events, page))
        qi_page_free_number(pages, page);
}

void qi_page_end(qi_pages *pages, qi_page *page, quire_result result, qi_page_events *events)
{
    qi_page **link = &pages->being_made;
    while (*link != page)
        link = &(*link)->next;
    *link = page->next;
    if (result)
        give_number(pages, page, events);
    qi_lock_wake_all(&pages->lock);
    qi_transit_end();
}
