/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - cuGetProcAddress of the fake CUDA driver: it finds the functions of the driver's
 * version that no test hides.
 */
#include "tests/support/cuda/table.h"

#include <string.h>

#define STREAM_FLAGS                                                                               \
    (QI_CU_GET_PROC_ADDRESS_LEGACY_STREAM | QI_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

typedef void (*any_function)(void);

typedef struct row {
    const char *name, *symbol;
    int version;
    any_function function;
} row;

static const row ROWS[FC_CALL_COUNT] = {
#define X(name, suffix, version, presence, parameters)                                             \
    {"cu" #name, "cu" #name #suffix, version, (any_function)fc_##name##suffix},
    FC_ENTRIES(X)
#undef X
};

static void put(void **to, any_function function)
{
    memcpy(to, &function, sizeof function); /* C has no cast between object and function pointers */
}

/* Finds the newest form of a function that a caller of this version knows. */
static qi_cu_query_result find(const char *name, int version, void **function)
{
    const row *found = NULL;
    bool too_new = false;
    for (uint32_t i = 0; i < FC_CALL_COUNT; i++) {
        if (strcmp(ROWS[i].name, name) || fc_is_hidden((fc_call)i))
            continue;
        bool is_known = ROWS[i].version <= version && ROWS[i].version <= fc.options.version;
        too_new |= !is_known;
        if (is_known && (!found || found->version < ROWS[i].version))
            found = &ROWS[i];
    }
    *function = NULL;
    if (found)
        put(function, found->function);
    return found     ? QI_CU_GET_PROC_ADDRESS_SUCCESS
           : too_new ? QI_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                     : QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

/* A version newer than the driver is an error for every function. */
static bool is_wrong(const char *name, void **function, int version, uint64_t flags)
{
    return !name || !function || version < 0 || version > fc.options.version ||
           flags & ~(uint64_t)STREAM_FLAGS || flags == STREAM_FLAGS;
}

qi_cu_result fc_GetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                                  qi_cu_query_result *why)
{
    qi_cu_result result = fc_enter(FC_CALL_GetProcAddress_v2);
    FC_REFUSE_IF(is_wrong(name, function, version, flags), INVALID_VALUE);
    if (!result) {
        qi_cu_query_result found = find(name, version, function);
        if (why)
            *why = found;
    }
    return fc_leave(result);
}

/* The older form reports only "not found". */
qi_cu_result fc_GetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    qi_cu_result result = fc_enter(FC_CALL_GetProcAddress);
    FC_REFUSE_IF(is_wrong(name, function, version, flags), INVALID_VALUE);
    FC_REFUSE_IF(find(name, version, function) != QI_CU_GET_PROC_ADDRESS_SUCCESS, NOT_FOUND);
    return fc_leave(result);
}

bool fc_has_symbol(fc_call call)
{
    fc_start();
    fc_lock();
    bool has = ROWS[call].version <= fc.options.version && !fc_is_hidden(call);
    fc_unlock();
    return has;
}

/* ---- the control -------------------------------------------------------------------------- */

const fc_control *fake_cuda(void)
{
    static const fc_control control = {
#define X(name) .name = fc_##name,
        FC_CONTROLS(X)
#undef X
            .find = fc_GetProcAddress_v2,
    };
    return &control;
}
