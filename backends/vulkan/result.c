/*
 * result.c - translates VkResult: see result.h.
 */
#include "backends/vulkan/result.h"

#include <stdarg.h>
#include <stdio.h>

/* Each VkResult with its quire_result. MEMORY_MAP_FAILED: the process has no address range left. */
#define KNOWN(X)                                                                                   \
    X(VK_NOT_READY, BACKEND_FAILURE)                                                               \
    X(VK_TIMEOUT, BACKEND_FAILURE)                                                                 \
    X(VK_INCOMPLETE, BACKEND_FAILURE)                                                              \
    X(VK_ERROR_OUT_OF_HOST_MEMORY, OUT_OF_HOST_MEMORY)                                             \
    X(VK_ERROR_OUT_OF_DEVICE_MEMORY, OUT_OF_DEVICE_MEMORY)                                         \
    X(VK_ERROR_INITIALIZATION_FAILED, BACKEND_FAILURE)                                             \
    X(VK_ERROR_DEVICE_LOST, DEVICE_LOST)                                                           \
    X(VK_ERROR_MEMORY_MAP_FAILED, OUT_OF_HOST_MEMORY)                                              \
    X(VK_ERROR_LAYER_NOT_PRESENT, UNSUPPORTED)                                                     \
    X(VK_ERROR_EXTENSION_NOT_PRESENT, UNSUPPORTED)                                                 \
    X(VK_ERROR_FEATURE_NOT_PRESENT, UNSUPPORTED)                                                   \
    X(VK_ERROR_INCOMPATIBLE_DRIVER, UNSUPPORTED)                                                   \
    X(VK_ERROR_TOO_MANY_OBJECTS, TOO_MANY_PAGES)                                                   \
    X(VK_ERROR_FORMAT_NOT_SUPPORTED, UNSUPPORTED)                                                  \
    X(VK_ERROR_FRAGMENTED_POOL, OUT_OF_DEVICE_MEMORY)                                              \
    X(VK_ERROR_UNKNOWN, BACKEND_FAILURE)                                                           \
    X(VK_ERROR_OUT_OF_POOL_MEMORY, OUT_OF_DEVICE_MEMORY)                                           \
    X(VK_ERROR_INVALID_EXTERNAL_HANDLE, INVALID_ARGUMENT)                                          \
    X(VK_ERROR_FRAGMENTATION, OUT_OF_DEVICE_MEMORY)                                                \
    X(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, BACKEND_FAILURE)                                    \
    X(VK_ERROR_NOT_PERMITTED_KHR, NOT_PERMITTED)

quire_result qi_vulkan_result(VkResult code)
{
    switch ((int)code) {
#define RESULT_CASE(name, result)                                                                  \
    case name:                                                                                     \
        return QUIRE_ERROR_##result;
        KNOWN(RESULT_CASE)
    default:
        return QUIRE_ERROR_BACKEND_FAILURE;
    }
}

const char *qi_vulkan_result_name(VkResult code, char *buffer, size_t size)
{
    switch ((int)code) {
#define NAME_CASE(name, result)                                                                    \
    case name:                                                                                     \
        return #name;
        KNOWN(NAME_CASE)
    default:
        snprintf(buffer, size, "VkResult %d", (int)code);
        return buffer;
    }
}

/* The native code of the last error is the VkResult. */
quire_result qi_vulkan_fail(VkResult code, const char *format, ...)
{
    char what[256], unknown[32];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return quire_backend_fail(qi_vulkan_result(code), code, "%s: %s", what,
                              qi_vulkan_result_name(code, unknown, sizeof unknown));
}
