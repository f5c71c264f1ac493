/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_live.c - ids of live allocations count up, and an address has one at a time.
 */
#include "src/tool/import/live.h"

#include "tests/support/unit.h"

UNIT(import_live, an_address_has_a_new_id_after_each_free)
{
    import_live live;
    CHECK(import_live_begin(&live));
    CHECK_EQ(import_live_find(&live, 0x100), 0);
    CHECK_EQ(import_live_add(&live, 0x100), 1);
    CHECK_EQ(import_live_add(&live, 0x200), 2);
    CHECK_EQ(import_live_find(&live, 0x100), 1);
    CHECK_EQ(import_live_remove(&live, 0x100), 1);
    CHECK_EQ(import_live_remove(&live, 0x100), 0);
    CHECK_EQ(import_live_add(&live, 0x100), 3);
    CHECK_EQ(import_live_find(&live, 0x200), 2);
    import_live_end(&live);
}

UNIT(import_live, nothing_is_live_at_address_0)
{
    import_live live;
    CHECK(import_live_begin(&live));
    CHECK_EQ(import_live_add(&live, 1), 1);
    CHECK_EQ(import_live_find(&live, 0), 0);
    CHECK_EQ(import_live_remove(&live, 0), 0);
    import_live_end(&live);
}

UNIT(import_live, ids_have_32_bits)
{
    import_live live;
    CHECK(import_live_begin(&live));
    live.last = UINT32_MAX - 1;
    CHECK_EQ(import_live_add(&live, 1), UINT32_MAX);
    CHECK_EQ(import_live_add(&live, 2), 0);
    import_live_end(&live);
}
