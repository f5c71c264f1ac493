/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * symbols.c - the symbols that dlsym finds in the library: one for each function that the driver
 * has.
 *
 * Each symbol is an indirect function of ELF, resolved when it is looked up. dlsym therefore does
 * not find a function that a test hides or that the driver's version lacks.
 */
#include "tests/support/cuda/table.h"

#define EXPORTED __attribute__((visibility("default")))

#define X(name, suffix, version, presence, parameters)                                             \
    typedef qi_cu_result(*pointer_##name##suffix) parameters;                                      \
    __attribute__((used)) static pointer_##name##suffix resolve_##name##suffix(void)               \
    {                                                                                              \
        return fc_has_symbol(FC_CALL_##name##suffix) ? fc_##name##suffix : NULL;                   \
    }                                                                                              \
    EXPORTED qi_cu_result cu##name##suffix parameters                                              \
        __attribute__((ifunc("resolve_" #name #suffix)));
FC_ENTRIES(X)
#undef X
