/*
 * no_plugin.h - what a shared object without InitPlugin has instead.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLUGIN_NO_PLUGIN_H
#define QUIRE_TESTS_SUPPORT_PLUGIN_NO_PLUGIN_H

int no_plugin(void);

#endif
