/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * system.c - the number of processors follows the affinity mask of the calling thread.
 */
#include "src/base/system.h"

#include <sched.h>
#include <unistd.h>

#include "tests/support/unit.h"

UNIT(system, at_least_one_and_at_most_those_of_the_system)
{
    uint32_t count = qi_processor_count();
    CHECK(count >= 1);
    CHECK(count <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}

UNIT(system, those_that_the_thread_may_run_on)
{
    cpu_set_t before, one;
    uint32_t count = qi_processor_count();
    if (sched_getaffinity(0, sizeof before, &before))
        return; /* more than 1024 processors */
    CHECK_EQ((uint32_t)CPU_COUNT(&before), count);
    size_t processor = 0;
    while (!CPU_ISSET(processor, &before))
        processor++;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(qi_processor_count(), 1);
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    CHECK_EQ(qi_processor_count(), count);
}
