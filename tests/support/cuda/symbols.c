/*
 * symbols.c - what dlsym finds in the library: a symbol per function, as long as the driver has the
 * function.
 *
 * Each is resolved when it is looked up (an indirect function of ELF), so that a function that a
 * test hides, or that the version does not have, is missing for dlsym, too.
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
