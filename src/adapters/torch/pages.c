/*
 * pages.c - records pages that are made and released in the history, as torch records segments. A
 * page that is gone has no address any more, so that the addresses are kept here, by page number.
 */
#include <stdlib.h>

#include "src/adapters/torch/state.h"

/* Requires the mutex. Returns false if host memory is exhausted. */
static bool reserve(torch_pages *pages, uint32_t number)
{
    uint32_t room = pages->room ? pages->room : 16;
    if (number < pages->room)
        return true;
    while (room <= number)
        room *= 2;
    torch_page *larger = realloc(pages->pages, room * sizeof *larger);
    if (!larger)
        return false;
    for (uint32_t i = pages->room; i < room; i++)
        larger[i] = (torch_page){.address = 0};
    pages->pages = larger;
    pages->room = room;
    return true;
}

static void record(const torch_pages *pages, torch_action action, const torch_page *page)
{
    if (page->address && torch_history_is_on())
        torch_history_add((torch_entry){.action = action,
                                        .device = pages->device,
                                        .address = page->address,
                                        .size = page->size,
                                        .pool = pages->id});
}

/* Requires the mutex. */
static void page_gone(torch_pages *pages, uint32_t number)
{
    if (number >= pages->room)
        return;
    record(pages, TORCH_PAGE_GONE, &pages->pages[number]);
    pages->pages[number] = (torch_page){.address = 0};
}

/* Events of different threads may come in another order: a page that is gone again is left out. */
static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    torch_pages *pages = user;
    quire_page_info info;
    bool is_made = event->kind == QUIRE_EVENT_PAGE_MADE;
    if (is_made && quire_page_get_info(memory, event->page, &info))
        return;
    pthread_mutex_lock(&pages->mutex);
    if (!is_made) {
        page_gone(pages, event->page);
    } else if (reserve(pages, event->page)) {
        torch_page *page = &pages->pages[event->page];
        *page = (torch_page){.address = info.address, .size = info.size};
        record(pages, TORCH_PAGE_MADE, page);
    }
    pthread_mutex_unlock(&pages->mutex);
}

quire_result torch_pages_watch(torch_pages *pages, int device, torch_pool_id id,
                               quire_memory *memory)
{
    const quire_hook hook = {
        .event = on_event, .user = pages, .kinds = QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_GONE};
    pages->device = device;
    pages->id = id;
    pthread_mutex_init(&pages->mutex, NULL);
    return quire_memory_set_hook(memory, &hook) ? torch_fail_quire("a memory") : QUIRE_SUCCESS;
}

void torch_pages_finish(torch_pages *pages)
{
    pthread_mutex_destroy(&pages->mutex);
    free(pages->pages);
    *pages = (torch_pages){.room = 0};
}
