/*
 * uses.c - counts the callbacks that the thread is in.
 */
#include "src/core/slot/uses.h"

#include <stdint.h>

/* Callbacks that the thread is in, while calls that enclose them have allocations in use. */
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
