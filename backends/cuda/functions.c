/*
 * functions.c - see functions.h.
 *
 * cuGetProcAddress is asked for each function with the version that brought the form declared in
 * abi_functions.h, so that a newer driver gives that one and no later form. Drivers before CUDA
 * 11.3 do not have it; there, and for what it does not know, the library's symbols are looked up.
 */
#include "backends/cuda/functions.h"

#include <dlfcn.h>
#include <string.h>

#include "src/base/result.h"

static const char *const LIBRARY = "libcuda.so.1";

enum { MAX_NAME = 64 };

/* ---- the library -------------------------------------------------------------------------- */

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

/* ---- the table ---------------------------------------------------------------------------- */

typedef enum presence { REQUIRED, OPTIONAL } presence;

/* A row of the table. */
typedef struct row {
    const char *name;   /* without "cu" */
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

/* The forms of cuGetProcAddress. */
typedef qi_cu_result (*finder)(const char *, void **, int, uint64_t, qi_cu_query_result *);
typedef qi_cu_result (*old_finder)(const char *, void **, int, uint64_t);

typedef struct source {
    void *library;
    finder find;
    old_finder find_old;
} source;

/* Function pointers are as large as those to objects wherever there is dlsym. */
static void *symbol_of(void *library, const char *name, const char *suffix)
{
    char whole[MAX_NAME] = "cu";
    strncat(whole, name, sizeof whole - strlen(whole) - 1);
    strncat(whole, suffix, sizeof whole - strlen(whole) - 1);
    return dlsym(library, whole);
}

static void *ask(const source *s, const row *r)
{
    char whole[MAX_NAME] = "cu";
    void *found = NULL;
    qi_cu_query_result why = 0;
    qi_cu_result code = QI_CUDA_SUCCESS;
    strncat(whole, r->name, sizeof whole - strlen(whole) - 1);
    if (s->find)
        code = s->find(whole, &found, r->version, QI_CU_GET_PROC_ADDRESS_LEGACY_STREAM, &why);
    else if (s->find_old)
        code = s->find_old(whole, &found, r->version, QI_CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    return code ? NULL : found;
}

static void *find(const source *s, const row *r)
{
    void *found = ask(s, r);
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
