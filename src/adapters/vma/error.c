/*
 * error.c - see error.h.
 */
#include "src/adapters/vma/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "quire/backend_core.h"

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

/* ---- lines ---------------------------------------------------------------------------------- */

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

/* ---- leaks ---------------------------------------------------------------------------------- */

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
