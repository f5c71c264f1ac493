/*
 * memfd.h - memory behind a descriptor that can be handed to another process.
 *
 * It is sealed: nobody who has the descriptor can change its size, for whoever touches what was cut
 * off ends with SIGBUS.
 */
#ifndef QUIRE_SRC_BASE_MEMFD_H
#define QUIRE_SRC_BASE_MEMFD_H

#include <stdbool.h>
#include <stdint.h>

/* Of exactly so many bytes, closed where a program is executed; `flags` are further ones of
   memfd_create. -1 with errno: there is none. */
int qi_memfd_make(const char *name, uint64_t size, unsigned flags);

/* Whether a descriptor is of memory of at least so many bytes that stay. */
bool qi_memfd_has(int descriptor, uint64_t size);

#endif
