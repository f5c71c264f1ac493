/*
 * init_plugin.c - the entry point: the wrapped plugin agrees with the host program on a version of
 * the interface and fills it in; then the functions for memory are replaced. So everything that
 * the adapter does not know goes through as it is, whatever the version.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "src/adapters/paddle_runtime/runtime.h"

/* Where the wrapped plugin lies. */
static const char *const PATH_VARIABLE = "QUIRE_PADDLE_PLUGIN";

__attribute__((visibility("default"))) void InitPlugin(qi_pd_params *params);

/* It stays loaded: the host program holds its functions. */
static qi_pd_init_plugin find_wrapped(const char *path)
{
    qi_pd_init_plugin init = NULL;
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, "InitPlugin") : NULL;
    if (!found) {
        const char *reason = dlerror();
        runtime_complain("%s: %s", path, reason ? reason : "it has no InitPlugin");
        return NULL;
    }
    memcpy(&init, &found, sizeof init);
    return init == InitPlugin ? NULL : init;
}

/* What a plugin has not got the adapter does not make up: the host program asks which are there. */
static void replace(qi_pd_interface *f)
{
    f->initialize = runtime_initialize;
    f->finalize = runtime_finalize;
    f->init_device = runtime_init_device;
    f->deinit_device = runtime_deinit_device;
    f->device_memory_allocate = runtime_device_allocate;
    f->device_memory_deallocate = runtime_device_deallocate;
    if (f->host_memory_allocate && f->host_memory_deallocate) {
        f->host_memory_allocate = runtime_host_allocate;
        f->host_memory_deallocate = runtime_host_deallocate;
    }
    if (f->unified_memory_allocate && f->unified_memory_deallocate) {
        f->unified_memory_allocate = runtime_unified_allocate;
        f->unified_memory_deallocate = runtime_unified_deallocate;
    }
    if (f->device_memory_stats)
        f->device_memory_stats = runtime_stats;
    f->device_min_chunk_size = runtime_min_chunk;
    f->device_max_chunk_size = runtime_max_chunk;
}

void InitPlugin(qi_pd_params *params)
{
    const char *path = secure_getenv(PATH_VARIABLE);
    if (!path || !*path || strlen(path) > RUNTIME_LONGEST_PATH) {
        runtime_complain("%s names no plugin to wrap", PATH_VARIABLE);
        return;
    }
    qi_pd_init_plugin init = find_wrapped(path);
    if (init)
        init(params);
    if (!init || !params->device_type)
        return; /* as the host program is told by the wrapped plugin itself */
    runtime_wrap(path, params->interface);
    replace(params->interface);
}
