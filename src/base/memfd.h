/*
 * memfd.h - memory with a file descriptor that another process can map.
 *
 * The size is sealed: no holder of the descriptor can change it, because a process that touches
 * bytes that were cut off dies of SIGBUS.
 */
#ifndef QUIRE_SRC_BASE_MEMFD_H
#define QUIRE_SRC_BASE_MEMFD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Creates memory of exactly `size` bytes. The descriptor is close-on-exec; `flags` are further
 * flags of memfd_create. Returns -1 and sets errno on failure. The caller closes the descriptor.
 */
int qi_memfd_make(const char *name, uint64_t size, unsigned flags);

/* Whether a descriptor names memory of at least `size` bytes that nobody can shrink. */
bool qi_memfd_has(int descriptor, uint64_t size);

#endif
