/*
 * result.c - translates the status of a plugin's function into a quire result, and names functions.
 */
#include "backends/plugin/library.h"

#include "src/base/result.h"

/* ---- statuses --------------------------------------------------------------------------- */

static const char *name_of(qi_pd_status status)
{
    static const char *const NAMES[] = {"C_SUCCESS", "C_WARNING", "C_FAILED", "C_ERROR",
                                        "C_INTERNAL_ERROR"};
    return status >= QI_PD_SUCCESS && status <= QI_PD_INTERNAL_ERROR ? NAMES[status] : "a status";
}

/* C_SUCCESS arrives here with a null pointer: some plugins report exhausted memory that way. */
quire_result qi_plugin_fail_memory(const qi_plugin_library *library, qi_pd_status status,
                                   const char *function, uint64_t size)
{
    bool is_exhausted =
        status == QI_PD_SUCCESS || status == QI_PD_WARNING || status == QI_PD_FAILED;
    quire_result result = is_exhausted            ? QUIRE_ERROR_OUT_OF_DEVICE_MEMORY
                          : status == QI_PD_ERROR ? QUIRE_ERROR_INVALID_ARGUMENT
                                                  : QUIRE_ERROR_BACKEND_FAILURE;
    return quire_backend_fail(result, status, "%s of plugin '%s' answers %s (%d) to %s%s", function,
                              library->device_type, name_of(status), (int)status,
                              qi_bytes(size).text, is_exhausted ? ": out of memory" : "");
}

quire_result qi_plugin_fail(const qi_plugin_library *library, qi_pd_status status,
                            const char *function)
{
    quire_result result =
        status == QI_PD_ERROR ? QUIRE_ERROR_INVALID_ARGUMENT : QUIRE_ERROR_BACKEND_FAILURE;
    return quire_backend_fail(result, status, "%s of plugin '%s' answers %s (%d)", function,
                              library->device_type, name_of(status), (int)status);
}

/* ---- functions -------------------------------------------------------------------------- */

const char *qi_plugin_name_at(size_t offset)
{
    switch (offset) {
#define X(name, at, parameters)                                                                    \
    case at:                                                                                       \
        return #name;
        QI_PD_FUNCTIONS(X)
#undef X
    default:
        return NULL;
    }
}

uint64_t qi_plugin_present(const qi_pd_interface *f)
{
    uint64_t present = 0;
#define X(name, at, parameters) present |= (uint64_t)(f->name != NULL) << ((at)-8) / 8;
    QI_PD_FUNCTIONS(X)
#undef X
    return present;
}
