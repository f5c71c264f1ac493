/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* stretches.c - see stretches.h. */
#include "src/tool/stretches.h"

#include "src/tool/array.h"

bool stretches_add(stretches *s, uint64_t begin, uint64_t end)
{
    if (s->count && s->items[s->count - 1].end == begin) {
        s->items[s->count - 1].end = end;
        return true;
    }
    stretch *larger = grow_array(s->items, &s->room, s->count, sizeof *larger);
    if (!larger)
        return false;
    s->items = larger;
    s->items[s->count++] = (stretch){begin, end};
    return true;
}

typedef struct page_walk {
    stretches *stretches;
    uint32_t page;
    bool failed;
} page_walk;

static bool add_item(void *user, const quire_item *item)
{
    page_walk *walk = user;
    if (item->page == walk->page)
        walk->failed = !stretches_add(walk->stretches, item->offset - item->left_padding,
                                      item->offset + item->size);
    return item->page <= walk->page && !walk->failed;
}

bool stretches_read(stretches *s, quire_memory *memory, uint32_t page)
{
    page_walk walk = {s, page, false};
    return !quire_memory_walk(memory, add_item, &walk) && !walk.failed;
}

void stretches_differ(const stretches *of, const stretches *without,
                      void (*found)(void *user, uint64_t begin, uint64_t end), void *user)
{
    uint64_t first = 0;
    for (uint64_t i = 0; i < of->count; i++) {
        uint64_t at = of->items[i].begin;
        const uint64_t end = of->items[i].end;
        while (first < without->count && without->items[first].end <= at)
            first++;
        for (uint64_t j = first; at < end; j++) {
            const bool is_last = j >= without->count || without->items[j].begin >= end;
            const uint64_t until = is_last ? end : without->items[j].begin;
            if (until > at)
                found(user, at, until);
            at = is_last ? end : without->items[j].end;
        }
    }
}
