/*
 * processors.h - the number of processors that the process may use. Thread-safe.
 */
#ifndef QUIRE_SRC_BASE_PROCESSORS_H
#define QUIRE_SRC_BASE_PROCESSORS_H

#include <stdint.h>

/*
 * Returns how many processors the calling thread may run on now, at least 1: those of its affinity
 * mask where the system has one, otherwise those that are online.
 */
uint32_t qi_processor_count(void);

#endif
