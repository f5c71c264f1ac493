/*
 * fork.h - entries of the backend table: the three stages of a fork, as quire/backend.h describes
 * them.
 */
#ifndef QUIRE_BACKENDS_VULKAN_FORK_H
#define QUIRE_BACKENDS_VULKAN_FORK_H

#include "quire/backend.h"

void qi_vulkan_fork_prepare(void *state);
void qi_vulkan_fork_done(void *state);
void qi_vulkan_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

#endif
