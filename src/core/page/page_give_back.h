/*
 * page_give_back.h - destroys pages that were taken out of a memory.
 *
 * Every function requires that the caller holds no lock. The calling thread owns the pages of a
 * list: they are LEAVING, or elastic pages whose end was cut (elastic_shrink.h).
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_GIVE_BACK_H
#define QUIRE_SRC_CORE_PAGE_PAGE_GIVE_BACK_H

#include "src/core/page/page_events.h"

/*
 * Destroys the pages of a list, unmaps the cut ends of elastic pages in it, and adds both to the
 * events. Returns the bytes given back.
 */
uint64_t qi_pages_give_back(quire_memory *memory, qi_page *list, qi_page_events *events);

/* Like qi_pages_give_back, but reports the events immediately. */
uint64_t qi_pages_destroy(quire_memory *memory, qi_page *list);

/*
 * Destroys a page that was never reported, without reporting it. Its number becomes free at once,
 * or, if it is the renewed number of the events, when these are reported.
 */
void qi_page_undo(quire_memory *memory, qi_page *page, qi_page_events *events);

#endif
