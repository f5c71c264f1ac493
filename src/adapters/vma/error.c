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

enum { MAX_TEXT = 300 };

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

void qi_vma_print(const char *function)
{
    fprintf(stderr, "quire: %s: %s\n", function, quire_last_error());
}

static void write_line(void *user, quire_log_level level, const char *line)
{
    (void)user;
    (void)level;
    fprintf(stderr, "quire: %s\n", line);
}

const quire_log QI_VMA_LOG = {.write = write_line, .level = QUIRE_LOG_WARNING};
