/*
 * processors.c - asks the system for the number of processors.
 */
#include "src/base/processors.h"

#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif

uint32_t qi_processor_count(void)
{
#ifdef __linux__
    cpu_set_t set; /* of 1024 processors; a system with more fails the call */
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}
