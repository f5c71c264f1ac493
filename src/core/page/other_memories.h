/*
 * other_memories.h - takes empty pages of the other memories of the device, before a page is
 * refused.
 */
#ifndef QUIRE_SRC_CORE_PAGE_OTHER_MEMORIES_H
#define QUIRE_SRC_CORE_PAGE_OTHER_MEMORIES_H

#include "src/core/state/memory.h"

/*
 * Requires the shard's lock. Releases and reacquires it. Called after a page of `needed` bytes was
 * refused with `refusal`. Gives back empty pages of other memories, unless a limit of the memory
 * itself is in the way: pages of the same heap, or of any heap if the device has too many pages.
 * What quire_memory_preallocate keeps stays. Calls the hooks of these memories.
 *
 * *turns, 0 at first, counts the calls for one request. The first gives back the needed bytes. The
 * second gives back all, because the backend may not be able to join the bytes of the first. If the
 * device has too many pages, each gives back one. Later ones do nothing. Returns whether anything
 * was given back. The thread's last error stays.
 */
bool qi_pages_take_from_others(qi_shard *shard, quire_result refusal, uint64_t needed,
                               bool dedicated, uint32_t *turns);

#endif
