/*
 * transit.c - the thread-local count, and its check in debug builds.
 */
#include "src/base/transit.h"

#include "src/base/lock.h"

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>
#endif

static _Thread_local int under_way;

void qi_transit_begin(void)
{
    under_way++;
}

void qi_transit_end(void)
{
    under_way--;
}

bool qi_transit_is_on(void)
{
    return under_way != 0;
}

void qi_transit_assert_none(void)
{
    qi_lock_assert_none();
#ifndef NDEBUG
    if (under_way) {
        fprintf(stderr, "quire: a callback is about to be called with %d page%s under way\n",
                under_way, under_way == 1 ? "" : "s");
        abort();
    }
#endif
}
