/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * no_plugin.h - the only function of a shared object without InitPlugin.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLUGIN_NO_PLUGIN_H
#define QUIRE_TESTS_SUPPORT_PLUGIN_NO_PLUGIN_H

int no_plugin(void);

#endif
