/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * base.c - translates results, writes lines, and allocates by the callbacks of the program.
 */
#include "src/adapters/vma/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quire/backend_core.h"

/* ---- results ------------------------------------------------------------------------------ */

/* What has no counterpart in Vulkan is a use that VMA does not allow. */
VkResult qi_vma_result(quire_result result)
{
    int64_t native = quire_last_native_code();
    switch (result) {
    case QUIRE_SUCCESS:
        return VK_SUCCESS;
    case QUIRE_ERROR_OUT_OF_HOST_MEMORY:
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    case QUIRE_ERROR_OUT_OF_DEVICE_MEMORY:
    case QUIRE_ERROR_OVER_BUDGET:
    case QUIRE_ERROR_NO_SPACE:
    case QUIRE_ERROR_OUT_OF_RANGE:
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    case QUIRE_ERROR_TOO_MANY_PAGES:
    case QUIRE_ERROR_TOO_MANY_ALLOCATIONS:
        return VK_ERROR_TOO_MANY_OBJECTS;
    case QUIRE_ERROR_UNSUPPORTED:
        return VK_ERROR_FEATURE_NOT_PRESENT;
    case QUIRE_ERROR_NOT_HOST_VISIBLE:
        return VK_ERROR_MEMORY_MAP_FAILED;
    case QUIRE_ERROR_DEVICE_LOST:
        return VK_ERROR_DEVICE_LOST;
    case QUIRE_ERROR_BACKEND_FAILURE:
        return native < 0 && native >= INT32_MIN ? (VkResult)native : VK_ERROR_UNKNOWN;
    case QUIRE_ERROR_CORRUPTED:
        return VK_ERROR_UNKNOWN;
    default:
        return VK_ERROR_VALIDATION_FAILED_EXT;
    }
}

static quire_result result_of(VkResult code)
{
    switch (code) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    case VK_ERROR_TOO_MANY_OBJECTS:
        return QUIRE_ERROR_TOO_MANY_ALLOCATIONS;
    case VK_ERROR_MEMORY_MAP_FAILED:
        return QUIRE_ERROR_NOT_HOST_VISIBLE;
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
        return QUIRE_ERROR_UNSUPPORTED;
    case VK_ERROR_VALIDATION_FAILED_EXT:
        return QUIRE_ERROR_INVALID_ARGUMENT;
    default:
        return QUIRE_ERROR_BACKEND_FAILURE;
    }
}

enum { MAX_TEXT = 300, MAX_LINE = 500 };

VkResult qi_vma_fail(VkResult code, const char *format, ...)
{
    char text[MAX_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    quire_result result = quire_backend_fail(result_of(code), code, "%s", text);
    (void)result;
    return code;
}

/* ---- lines -------------------------------------------------------------------------------- */

enum { MAX_LISTED = 16 };

/* What the thread writes. */
static _Thread_local struct {
    quire_vma_leak_log log; /* NULL: stderr */
    bool is_list;           /* at most MAX_LISTED lines */
    uint32_t lines;         /* of the list */
} output;

void qi_vma_send_lines(quire_vma_leak_log log)
{
    output.log = log;
}

static void write_line(const char *line)
{
    if (output.is_list && output.lines++ >= MAX_LISTED)
        return;
    if (output.log)
        output.log(line);
    else
        fprintf(stderr, "quire: %s\n", line);
}

void qi_vma_print(const char *function)
{
    char line[MAX_LINE];
    snprintf(line, sizeof line, "%s: %s", function, quire_last_error());
    write_line(line);
}

static void write_logged(void *user, quire_log_level level, const char *line)
{
    (void)user;
    (void)level;
    write_line(line);
}

const quire_log QI_VMA_LOG = {.write = write_logged, .level = QUIRE_LOG_WARNING};

/* ---- leaks -------------------------------------------------------------------------------- */

quire_result qi_vma_destroy_memory(quire_memory **memory)
{
    char line[MAX_LINE];
    quire_memory_info info;
    quire_memory_stats stats;
    output.is_list = true;
    output.lines = 0;
    quire_result result = quire_memory_destroy(memory);
    output.is_list = false;
    if (!result || output.lines <= MAX_LISTED || quire_memory_get_info(*memory, &info) ||
        quire_memory_get_stats(*memory, &stats))
        return result;
    snprintf(line, sizeof line, "memory '%s' holds %llu allocations with %llu bytes; %u more lines",
             info.name, (unsigned long long)stats.allocation_count,
             (unsigned long long)stats.requested_bytes, output.lines - MAX_LISTED);
    write_line(line);
    return result;
}

/* ---- host memory -------------------------------------------------------------------------- */

/* The largest alignment that quire asks its host memory for. */
enum { RECORD_ALIGNMENT = 64 };

static void *allocate_for_quire(void *user, size_t size, size_t alignment)
{
    const VkAllocationCallbacks *callbacks = user;
    return callbacks->pfnAllocation(callbacks->pUserData, size, alignment,
                                    VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
}

static void release_for_quire(void *user, void *pointer, size_t size, size_t alignment)
{
    const VkAllocationCallbacks *callbacks = user;
    (void)size;
    (void)alignment;
    callbacks->pfnFree(callbacks->pUserData, pointer);
}

bool qi_vma_host_can_use(const VkAllocationCallbacks *callbacks)
{
    if (!callbacks || (callbacks->pfnAllocation && callbacks->pfnFree))
        return true;
    qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                "pAllocationCallbacks: pfnAllocation or pfnFree is null");
    return false;
}

void qi_vma_host_begin(qi_vma_host *host, const VkAllocationCallbacks *callbacks)
{
    *host = (qi_vma_host){.callbacks = {.pUserData = NULL}};
    if (!callbacks)
        return;
    host->callbacks = *callbacks;
    host->memory = (quire_host_memory){
        .allocate = allocate_for_quire, .release = release_for_quire, .user = &host->callbacks};
}

const VkAllocationCallbacks *qi_vma_host_callbacks(const qi_vma_host *host)
{
    return host->callbacks.pfnAllocation ? &host->callbacks : NULL;
}

void *qi_vma_host_allocate(const qi_vma_host *host, size_t size)
{
    const VkAllocationCallbacks *callbacks = &host->callbacks;
    void *pointer = callbacks->pfnAllocation
                        ? callbacks->pfnAllocation(callbacks->pUserData, size, RECORD_ALIGNMENT,
                                                   VK_SYSTEM_ALLOCATION_SCOPE_OBJECT)
                        : malloc(size);
    if (pointer)
        return memset(pointer, 0, size);
    qi_vma_fail(VK_ERROR_OUT_OF_HOST_MEMORY, "no host memory for %zu bytes", size);
    return NULL;
}

void qi_vma_host_release(const qi_vma_host *host, void *pointer)
{
    if (pointer && host->callbacks.pfnFree)
        host->callbacks.pfnFree(host->callbacks.pUserData, pointer);
    else
        free(pointer);
}

/* ---- names -------------------------------------------------------------------------------- */

bool qi_vma_name_set(const qi_vma_host *host, char **name, const char *text)
{
    char *copy = NULL;
    if (text) {
        size_t size = strlen(text) + 1;
        copy = qi_vma_host_allocate(host, size);
        if (!copy)
            return false;
        memcpy(copy, text, size);
    }
    qi_vma_host_release(host, *name);
    *name = copy;
    return true;
}

/* ---- texts -------------------------------------------------------------------------------- */

/* Makes room for `size` more bytes and a terminating 0. */
static bool reserve(qi_vma_text *text, size_t size)
{
    if (text->room - text->size > size)
        return true;
    size_t room = 2 * text->room + size + 1;
    char *data = qi_vma_host_allocate(text->host, room);
    if (!data)
        return false;
    if (text->data)
        memcpy(data, text->data, text->size);
    qi_vma_host_release(text->host, text->data);
    text->data = data;
    text->room = room;
    return true;
}

bool qi_vma_text_write(void *user, const char *piece, size_t size)
{
    qi_vma_text *text = user;
    if (text->has_failed || !reserve(text, size)) {
        text->has_failed = true;
        return false;
    }
    memcpy(text->data + text->size, piece, size);
    text->size += size;
    text->data[text->size] = '\0';
    return true;
}

void qi_vma_text_add(qi_vma_text *text, const char *piece)
{
    (void)qi_vma_text_write(text, piece, strlen(piece));
}

char *qi_vma_text_end(qi_vma_text *text)
{
    if (!text->has_failed)
        return text->data;
    qi_vma_host_release(text->host, text->data);
    return NULL;
}
