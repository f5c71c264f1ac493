/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * no_plugin.c - a shared object that is not a plugin: it has no InitPlugin.
 */
#include "tests/support/plugin/no_plugin.h"

int no_plugin(void)
{
    return 0;
}
