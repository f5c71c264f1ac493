/*
 * functions.c - loads the driver's library and looks its functions up.
 *
 * quire requests each function from cuGetProcAddress with the version that introduced the form
 * declared in abi_functions.h. A newer driver then returns that form and no later one. Drivers
 * before CUDA 11.3 have no cuGetProcAddress; there, and for functions that cuGetProcAddress does
 * not know, the symbols of the library are looked up.
 */
#include "backends/cuda/functions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "src/base/result.h"

static const char *const LIBRARY = "libcuda.so.1";

/* Bytes of a function name with "cu", suffix and terminator. */
enum { MAX_NAME = 64 };

/* ---- the library ------------------------------------------------------------------------ */

quire_result qi_cuda_open_library(const char *path, void **library)
{
    const char *wanted = path && *path ? path : LIBRARY;
    *library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*library)
        return QUIRE_SUCCESS;
    const char *reason = dlerror();
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "CUDA driver not found: %s",
                        reason ? reason : wanted);
}

void qi_cuda_close_library(void *library)
{
    if (library)
        dlclose(library);
}

/* ---- the table -------------------------------------------------------------------------- */

typedef enum presence { REQUIRED, OPTIONAL } presence;

/* One function of the table. */
typedef struct row {
    const char *name;   /* without the prefix "cu" */
    const char *suffix; /* of the symbol */
    int version;
    presence presence;
    size_t offset; /* in qi_cuda_functions */
} row;

static const row rows[] = {
#define ROW(name, suffix, version, presence, parameters)                                           \
    {#name, #suffix, version, presence, offsetof(qi_cuda_functions, name)},
    QI_CU_FUNCTIONS(ROW)
#undef ROW
};

/* cuGetProcAddress since 12.0, and before. */
typedef qi_cu_result (*finder)(const char *, void **, int, uint64_t, qi_cu_query_result *);
typedef qi_cu_result (*old_finder)(const char *, void **, int, uint64_t);

typedef struct source {
    void *library;
    finder find;
    old_finder find_old;
} source;

/* Function pointers have the size of object pointers on every system with dlsym. */
static void *symbol_of(void *library, const char *name, const char *suffix)
{
    char whole[MAX_NAME];
    snprintf(whole, sizeof whole, "cu%s%s", name, suffix);
    return dlsym(library, whole);
}

/* Returns NULL if the driver has no cuGetProcAddress, or if that does not know the function. */
static void *query(const source *s, const row *r)
{
    char whole[MAX_NAME];
    void *found = NULL;
    qi_cu_query_result why = 0;
    qi_cu_result code = QI_CUDA_SUCCESS;
    snprintf(whole, sizeof whole, "cu%s", r->name);
    if (s->find)
        code = s->find(whole, &found, r->version, QI_CU_GET_PROC_ADDRESS_LEGACY_STREAM, &why);
    else if (s->find_old)
        code = s->find_old(whole, &found, r->version, QI_CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    return code ? NULL : found;
}

static void *find(const source *s, const row *r)
{
    void *found = query(s, r);
    return found ? found : symbol_of(s->library, r->name, r->suffix);
}

quire_result qi_cuda_load(qi_cuda_functions *functions, void *library)
{
    source s = {.library = library};
    void *finders[] = {symbol_of(library, "GetProcAddress", "_v2"),
                       symbol_of(library, "GetProcAddress", "")};
    memcpy(&s.find, &finders[0], sizeof s.find);
    memcpy(&s.find_old, &finders[1], sizeof s.find_old);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *found = find(&s, &rows[i]);
        if (!found && rows[i].presence == REQUIRED)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "the CUDA driver has no cu%s",
                                rows[i].name);
        memcpy((char *)functions + rows[i].offset, &found, sizeof found);
    }
    return QUIRE_SUCCESS;
}
