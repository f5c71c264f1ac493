/*
 * page_take.c - changes the phase of pages that leave a memory or move between shards.
 *
 * A thread that has a page under way marks that (transit.h), so that debug builds catch a callback
 * that would wait for the thread itself.
 */
#include "src/core/page/page_take.h"

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty_pages.h"
#include "src/core/page/page_history.h"
#include "src/core/page/page_region.h"

void qi_pages_init(qi_pages *pages)
{
    *pages = (qi_pages){0};
    qi_lock_init(&pages->lock, "pages", QI_RANK_PAGES);
    qi_table_init(&pages->records, sizeof(qi_page));
}

void qi_pages_finish(qi_pages *pages, qi_host *host)
{
    qi_table_finish(&pages->records, host);
}

/* The lock order requires the shard's lock first, but the page must be read to know its shard. */
qi_page *qi_page_acquire(quire_memory *memory, uint32_t number)
{
    qi_pages *pages = &memory->pages;
    for (;;) {
        qi_lock_acquire(&pages->lock);
        qi_page *page = qi_page_at(pages, number);
        qi_shard *shard = page && page->phase == QI_PAGE_LIVE ? page->shard : NULL;
        qi_lock_release(&pages->lock);
        if (!shard)
            return NULL;
        qi_lock_acquire(&shard->lock);
        /* between the locks the page may have left, and its number may belong to another page */
        qi_lock_acquire(&pages->lock);
        bool is_still_live = page->phase == QI_PAGE_LIVE && page->shard == shard;
        qi_lock_release(&pages->lock);
        if (is_still_live)
            return page;
        qi_lock_release(&shard->lock);
    }
}

/* Requires the lock of the pages. Called before the phase changes. */
static void count_moving(qi_pages *pages, const qi_page *page, bool will_move)
{
    if (page->phase == QI_PAGE_MOVING) {
        pages->moving--;
        pages->changes++;
        qi_lock_wake_all(&pages->lock);
    }
    pages->moving += will_move;
}

/* Takes a page out of the statistics. Its region is removed already, or its space is destroyed. */
static qi_page *take_out(qi_page *page, qi_page *list)
{
    qi_pages *pages = &page->shard->memory->pages;
    quire_memory_stats *stats = &pages->stats;
    qi_addresses_leave_page(page->shard->memory, page);
    qi_lock_acquire(&pages->lock);
    stats->pages_destroyed++;
    stats->page_count--;
    stats->reserved_bytes -= page->native.size;
    qi_page_history_change(page, page->native.size, 0);
    pages->leaving++;
    count_moving(pages, page, false);
    page->phase = QI_PAGE_LEAVING;
    page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
    qi_transit_begin();
    page->next = list;
    return page;
}

qi_page *qi_page_take(qi_page *page, qi_page *list)
{
    qi_page_remove_region(page);
    return take_out(page, list);
}

qi_page *qi_pages_take_all(quire_memory *memory)
{
    qi_page *list = NULL;
    for (uint32_t i = memory->pages.top; i-- > 0;) {
        qi_page *page = qi_page_at(&memory->pages, i);
        if (page->phase == QI_PAGE_LIVE)
            list = take_out(page, list);
    }
    return list;
}

/* ---- from shard to shard ------------------------------------------------------------------- */

/* Changes phase and shard together, so that no thread sees one without the other. */
static void set_phase(qi_page *page, qi_shard *shard, qi_page_phase phase)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    count_moving(pages, page, phase == QI_PAGE_MOVING);
    qi_page_history_change(page, page->native.size, 0);
    page->shard = shard;
    qi_page_history_change(page, 0, page->native.size);
    page->phase = phase;
    page->owner = qi_thread_self();
    qi_lock_release(&pages->lock);
}

void qi_page_leave_shard(qi_page *page)
{
    qi_page_remove_region(page);
    set_phase(page, page->shard, QI_PAGE_MOVING);
    qi_transit_begin();
}

bool qi_page_enter_shard(qi_page *page, qi_shard *shard, qi_page **leaving)
{
    qi_transit_end();
    if (qi_page_add_region(shard, page)) {
        *leaving = take_out(page, *leaving);
        return false;
    }
    set_phase(page, shard, QI_PAGE_LIVE);
    qi_empty_pages_add(page);
    return true;
}
