/*
 * access_end.c - flush and invalidate at the end of a page whose size is no multiple of the atom.
 */
#include "tests/support/fixture.h"

enum { SIZE = 100 }; /* the atom of the fake's kind 2 is 64 */

static void check_synced(const fixture *b, uint64_t offset, uint64_t size)
{
    CHECK_EQ(b->fake.last_sync_offset, offset);
    CHECK_EQ(b->fake.last_sync_size, size);
}

UNIT_PREPARED(access_end, a_flush_does_not_exceed_the_page, b)
{
    const uint64_t description = SIZE;
    quire_allocation made;
    fixture_open(b, &(quire_memory_options){.kind.mask = 4});
    CHECK_OK(quire_page_adopt(b->memory, &description, &(quire_allocation_options){.size = SIZE},
                              &made));
    CHECK_OK(quire_flush(b->memory, made, 0, 0));
    check_synced(b, 0, SIZE);
    CHECK_OK(quire_invalidate(b->memory, made, 90, 5));
    check_synced(b, 64, SIZE - 64);
    CHECK_OK(quire_flush(b->memory, made, 10, 20));
    check_synced(b, 0, 64);
    CHECK_OK(quire_write(b->memory, made, 99, "x", 1));
    check_synced(b, 64, SIZE - 64);
    const quire_view view = {.allocation = made, .offset = 70, .size = 30};
    CHECK_OK(quire_flush_batch(b->memory, &view, 1));
    check_synced(b, 64, SIZE - 64);
    CHECK_OK(quire_free(b->memory, made));
}
