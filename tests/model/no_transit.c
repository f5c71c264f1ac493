/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * no_transit.c - in place of src/base/thread.c: no modelled thread is inside a backend's function.
 */
#include "src/base/thread.h"

bool qi_transit_is_on(void)
{
    return false;
}
