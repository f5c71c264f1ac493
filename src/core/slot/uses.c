/*
 * uses.c - see uses.h.
 */
#include "src/core/slot/uses.h"

#include <stdint.h>

/* Callbacks that the thread runs while calls of the library below them use allocations. */
static _Thread_local uint32_t callbacks;

void qi_uses_begin_callback(void)
{
    callbacks++;
}

void qi_uses_end_callback(void)
{
    callbacks--;
}

bool qi_uses_are_kept(void)
{
    return callbacks != 0;
}
