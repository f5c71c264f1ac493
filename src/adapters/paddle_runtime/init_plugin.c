/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * init_plugin.c - the entry point of the adapter. The wrapped plugin negotiates the version of the
 * interface with the host program and fills the interface in; then the adapter replaces the memory
 * functions. Functions that the adapter does not know pass through unchanged, in every version.
 */
#include <dlfcn.h>
#include <string.h>

#include "src/adapters/paddle_runtime/runtime.h"
#include "src/base/process.h"

#define PREFIX "QUIRE_PADDLE_"

/* The environment variable with the path of the wrapped plugin, without the prefix. */
static const char *const PATH_NAME = "PLUGIN";

__attribute__((visibility("default"))) void InitPlugin(qi_pd_params *params);

/* Loads the wrapped plugin and never unloads it, because the host program holds its functions. NULL
   if the path names this adapter. */
static qi_pd_init_plugin find_wrapped(const char *path)
{
    qi_pd_init_plugin init = NULL;
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, "InitPlugin") : NULL;
    if (!found) {
        const char *reason = dlerror();
        runtime_log("%s: %s", path, reason ? reason : "it has no InitPlugin");
        return NULL;
    }
    memcpy(&init, &found, sizeof init);
    return init == InitPlugin ? NULL : init;
}

/* Replaces only functions that the plugin has: the host program tests which ones exist. */
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

static void say_unknown(void *user, const char *sentence)
{
    (void)user;
    runtime_log("%s", sentence);
}

/* Without a wrapped plugin device_type stays NULL, so that the host program rejects the adapter. */
void InitPlugin(qi_pd_params *params)
{
    const char *path = qi_variable(PREFIX, PATH_NAME);
    qi_find_unknown_variables(PREFIX, &PATH_NAME, 1, say_unknown, NULL);
    if (!path || strlen(path) > RUNTIME_MAX_PATH) {
        runtime_log("%s%s names no plugin to wrap", PREFIX, PATH_NAME);
        return;
    }
    qi_pd_init_plugin init = find_wrapped(path);
    if (init)
        init(params);
    if (!init || !params->device_type)
        return; /* the wrapped plugin refused the version, and device_type says so */
    runtime_wrap(path, params->interface);
    replace(params->interface);
}
