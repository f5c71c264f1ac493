/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * library.c - a plugin is loaded once, counted, and finalised after its last user. It accepts only
 * the size of the interface that it was compiled with, so each known size is offered in turn. Also
 * checks the functions it provides, counts the users of its devices, and translates the statuses of
 * its functions.
 */
#include "backends/plugin/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "src/base/result.h"

/* No machine has more devices: a larger count means that the plugin did not write it. */
enum { MAX_DEVICES = 4096, OLDEST_VERSION = 101 };

/*
 * Protects the list, all user counts, and init and deinit calls. Held while a plugin initialises.
 */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static qi_plugin_library *libraries;

/* ---- forks -------------------------------------------------------------------------------- */

static void lock_list(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock_list(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A fork holds the mutex, so that the child finds the list consistent and the mutex free. */
static void register_handlers(void)
{
    (void)pthread_atfork(lock_list, unlock_list,
                         unlock_list); /* fails without memory: forks are then not safe */
}

/* ---- negotiation -------------------------------------------------------------------------- */

/*
 * Offers each known size of CustomRuntimeParams. A plugin accepts only the size that it was
 * compiled with; it ignores any other call without an error, and device_type stays NULL. Returns
 * false if it accepts none. The blocks are cleared before each call, because a plugin may have
 * written to them.
 */
static bool negotiate(qi_plugin_library *library, qi_pd_init_plugin init)
{
    static const size_t SIZES[] = QI_PD_PARAMS_SIZES;
    qi_pd_params *params = &library->params.params;
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES && !params->device_type; i++) {
        memset(&library->params, 0, sizeof library->params);
        memset(&library->block, 0, sizeof library->block);
        params->size = SIZES[i];
        params->interface = &library->block.interface;
        library->block.interface.size = sizeof library->block;
        init(params);
    }
    return params->device_type != NULL;
}

/* quire works without every other function. */
static quire_result check_required(const qi_plugin_library *library)
{
    const qi_pd_interface *f = qi_plugin_functions(library);
    const char *missing = !f->device_memory_allocate     ? "device_memory_allocate"
                          : !f->device_memory_deallocate ? "device_memory_deallocate"
                          : !f->get_device_count         ? "get_device_count"
                          : !f->get_device_list          ? "get_device_list"
                          : !f->set_device               ? "set_device"
                                                         : NULL;
    if (!missing)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' of %s has no %s",
                        library->params.params.device_type, library->path, missing);
}

static quire_result check_given(const qi_plugin_library *library)
{
    const qi_pd_params *p = &library->params.params;
    bool is_old = p->major == 0 && (p->minor == 0 || (p->minor == 1 && p->patch == 0));
    if (is_old)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "plugin '%s' of %s has version %zu.%zu.%zu: 0.1.1 is the minimum",
                            p->device_type, library->path, p->major, p->minor, p->patch);
    return check_required(library);
}

/* Copies the names, because the plugin owns their memory. */
static quire_result init_plugin(qi_plugin_library *library)
{
    void *found = dlsym(library->handle, "InitPlugin");
    qi_pd_init_plugin init = NULL;
    if (!found)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "%s has no InitPlugin: it is not a plugin",
                            library->path);
    memcpy(&init, &found, sizeof init);
    if (!negotiate(library, init))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "the plugin of %s names no device type: it refuses this version of the "
                            "interface",
                            library->path);
    quire_result result = check_given(library);
    if (result)
        return result;
    const char *sub = library->params.params.sub_device_type;
    library->device_type = qi_host_copy_text(&library->host, library->params.params.device_type);
    library->sub_device_type = qi_host_copy_text(&library->host, sub ? sub : "");
    if (!library->device_type || !library->sub_device_type)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plugin's names");
    return QUIRE_SUCCESS;
}

/* ---- devices of a plugin ------------------------------------------------------------------ */

/* Device numbers are 32-bit in C_Device. */
static quire_result read_list(qi_plugin_library *library, size_t *ids)
{
    const qi_pd_interface *f = qi_plugin_functions(library);
    qi_pd_status status = f->get_device_list(ids);
    if (status)
        return qi_plugin_fail(library, status, "get_device_list");
    for (uint32_t i = 0; i < library->unit_count; i++) {
        if (ids[i] > INT32_MAX)
            return qi_fail_text(QUIRE_ERROR_BACKEND_FAILURE,
                                "get_device_list of plugin '%s' reports device %zu",
                                library->device_type, ids[i]);
        library->units[i].listed = (int32_t)ids[i];
    }
    return QUIRE_SUCCESS;
}

/* On failure library->units remains; release_record releases it. */
static quire_result list_devices(qi_plugin_library *library)
{
    size_t count = 0;
    qi_pd_status status = qi_plugin_functions(library)->get_device_count(&count);
    if (status)
        return qi_plugin_fail(library, status, "get_device_count");
    if (!count || count > MAX_DEVICES)
        return qi_fail_text(count ? QUIRE_ERROR_BACKEND_FAILURE : QUIRE_ERROR_UNSUPPORTED,
                            "plugin '%s' of %s has %zu devices", library->device_type,
                            library->path, count);
    library->units = qi_host_allocate(&library->host, count, sizeof *library->units);
    size_t *ids = qi_host_allocate(&library->host, count, sizeof *ids);
    quire_result result = QUIRE_SUCCESS;
    library->unit_count = library->units ? (uint32_t)count : 0;
    if (!library->units || !ids)
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plugin's devices");
    else
        result = read_list(library, ids);
    qi_host_release(&library->host, ids, count, sizeof *ids);
    return result;
}

/* init_device may change the number in unit->device; it starts from the listed one each time. */
quire_result qi_plugin_unit_acquire(qi_plugin_library *library, uint32_t index,
                                    qi_plugin_unit **out)
{
    const qi_pd_interface *f = qi_plugin_functions(library);
    quire_result result = QUIRE_SUCCESS;
    if (index >= library->unit_count)
        return qi_fail_text(
            QUIRE_ERROR_OUT_OF_RANGE, "plugin '%s' has %u device%s, there is no device %u",
            library->device_type, library->unit_count, qi_plural(library->unit_count), index);
    qi_plugin_unit *unit = &library->units[index];
    pthread_mutex_lock(&mutex);
    if (!unit->users) {
        unit->device.id = unit->listed;
        qi_pd_status status = f->init_device ? f->init_device(&unit->device) : QI_PD_SUCCESS;
        if (status)
            result = qi_plugin_fail(library, status, "init_device");
    }
    unit->users += !result;
    pthread_mutex_unlock(&mutex);
    if (!result)
        *out = unit;
    return result;
}

void qi_plugin_unit_release(qi_plugin_library *library, qi_plugin_unit *unit)
{
    if (!unit)
        return;
    const qi_pd_interface *f = qi_plugin_functions(library);
    pthread_mutex_lock(&mutex);
    if (!--unit->users && f->deinit_device && !library->has_forked)
        f->deinit_device(&unit->device); /* the caller could not act on a failure */
    pthread_mutex_unlock(&mutex);
}

/* ---- the list of loaded plugins ----------------------------------------------------------- */

/* Accepts a record that create_record could not complete. */
static void release_record(qi_plugin_library *library)
{
    qi_host host = library->host;
    qi_host_release(&host, library->units, library->unit_count, sizeof *library->units);
    qi_host_release_text(&host, library->device_type);
    qi_host_release_text(&host, library->sub_device_type);
    qi_host_release_text(&host, library->path);
    qi_host_release(&host, library, 1, sizeof *library);
}

static quire_result create_record(const char *path, void *handle, qi_plugin_library **out)
{
    qi_host host;
    quire_result result = qi_host_init(&host, NULL);
    if (result)
        return result;
    qi_plugin_library *library = qi_host_allocate(&host, 1, sizeof *library);
    if (!library)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plugin");
    library->host = host;
    library->handle = handle;
    library->path = qi_host_copy_text(&library->host, path);
    if (!library->path) {
        release_record(library);
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plugin's path");
    }
    *out = library;
    return QUIRE_SUCCESS;
}

/* Requires the mutex. Negotiates, initialises, and lists the devices. On failure the plugin is
   finalised; the caller releases the record. */
static quire_result start(qi_plugin_library *library)
{
    const qi_pd_interface *f = qi_plugin_functions(library);
    quire_result result = init_plugin(library);
    if (result)
        return result;
    qi_pd_status status = f->initialize ? f->initialize() : QI_PD_SUCCESS;
    if (status)
        return qi_plugin_fail(library, status, "initialize");
    result = list_devices(library);
    if (result && f->finalize)
        f->finalize();
    return result;
}

/* Requires the mutex. Takes ownership of the dlopen handle, also on failure. dlopen returns the
   same handle for the same file, so the handle identifies the plugin. */
static quire_result find_or_start(const char *path, void *handle, qi_plugin_library **out)
{
    qi_plugin_library *library = libraries;
    while (library && library->handle != handle)
        library = library->next;
    if (library && library->has_forked) {
        dlclose(handle);
        return qi_fail_text(QUIRE_ERROR_NOT_PERMITTED,
                            "plugin '%s' was initialised before a fork: the child cannot use it",
                            library->params.params.device_type);
    }
    if (library) {
        library->users++;
        dlclose(handle); /* the record holds one reference already */
        *out = library;
        return QUIRE_SUCCESS;
    }
    quire_result result = create_record(path, handle, &library);
    if (!result) {
        result = start(library);
        if (result)
            release_record(library);
    }
    if (result) {
        dlclose(handle);
        return result;
    }
    library->users = 1;
    library->next = libraries;
    libraries = library;
    *out = library;
    return QUIRE_SUCCESS;
}

quire_result qi_plugin_library_acquire(const char *path, qi_plugin_fill_table fill_table,
                                       qi_plugin_library **library)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handlers);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        const char *reason = dlerror();
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "the plugin cannot be loaded: %s",
                            reason ? reason : path);
    }
    pthread_mutex_lock(&mutex);
    quire_result result = find_or_start(path, handle, library);
    if (!result && fill_table && !(*library)->table.size)
        fill_table(qi_plugin_functions(*library), &(*library)->table);
    pthread_mutex_unlock(&mutex);
    return result;
}

void qi_plugin_library_release(qi_plugin_library *library)
{
    if (!library)
        return;
    pthread_mutex_lock(&mutex);
    if (!--library->users) {
        qi_plugin_library **link = &libraries;
        while (*link != library)
            link = &(*link)->next;
        *link = library->next;
        if (!library->has_forked) { /* in a child it stays loaded: none of its code runs there */
            if (qi_plugin_functions(library)->finalize)
                qi_plugin_functions(library)->finalize();
            dlclose(library->handle);
        }
        release_record(library);
    }
    pthread_mutex_unlock(&mutex);
}

/* ---- statuses ----------------------------------------------------------------------------- */

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

/* ---- names of functions ------------------------------------------------------------------- */

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
