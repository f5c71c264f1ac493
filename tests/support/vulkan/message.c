/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * message.c - messages about errors of callers: see fake_vulkan.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/driver.h"

static bool is_allowed(const fv_driver *driver, const char *text)
{
    for (uint32_t i = 0; i < driver->allowed_count; i++)
        if (strstr(text, driver->allowed[i]))
            return true;
    return false;
}

static void keep(fv_driver *driver, fv_severity severity, const char *text)
{
    if (is_allowed(driver, text))
        return;
    driver->message_counts[severity]++;
    if (driver->options.flags & FV_PRINT)
        fprintf(stderr, "fake vulkan: %s\n", text);
    if (driver->message_count == FV_MAX_MESSAGES)
        return;
    driver->messages[driver->message_count] = strdup(text);
    if (driver->messages[driver->message_count])
        driver->message_count++;
}

void fv_say(fv_driver *driver, fv_severity severity, const char *id, fv_call call,
            const char *format, ...)
{
    char text[1024];
    int head =
        snprintf(text, sizeof text, "%s %s: %s: ", severity == FV_ERROR ? "ERROR" : "WARNING", id,
                 fv_call_name(call));
    va_list args;
    va_start(args, format);
    vsnprintf(text + head, sizeof text - (size_t)head, format, args);
    va_end(args);
    pthread_mutex_lock(&driver->message_lock);
    keep(driver, severity, text);
    pthread_mutex_unlock(&driver->message_lock);
}

uint32_t fv_message_count(fv_driver *driver, fv_severity severity)
{
    pthread_mutex_lock(&driver->message_lock);
    uint32_t count = driver->message_counts[severity];
    pthread_mutex_unlock(&driver->message_lock);
    return count;
}

const char *fv_message(fv_driver *driver, uint32_t index)
{
    pthread_mutex_lock(&driver->message_lock);
    const char *text = index < driver->message_count ? driver->messages[index] : NULL;
    pthread_mutex_unlock(&driver->message_lock);
    return text;
}

const char *fv_message_with(fv_driver *driver, const char *part)
{
    for (uint32_t i = 0; i < FV_MAX_MESSAGES; i++) {
        const char *text = fv_message(driver, i);
        if (!text || strstr(text, part))
            return text;
    }
    return NULL;
}

void fv_forget(fv_driver *driver)
{
    pthread_mutex_lock(&driver->message_lock);
    for (uint32_t i = 0; i < driver->message_count; i++)
        free(driver->messages[i]);
    driver->message_count = 0;
    memset(driver->message_counts, 0, sizeof driver->message_counts);
    pthread_mutex_unlock(&driver->message_lock);
}

void fv_allow(fv_driver *driver, const char *part)
{
    pthread_mutex_lock(&driver->message_lock);
    if (strlen(part) >= FV_NAME_SIZE || driver->allowed_count == FV_MAX_FAULTS)
        abort(); /* otherwise the message would count, unlike the test expects */
    strcpy(driver->allowed[driver->allowed_count++], part);
    pthread_mutex_unlock(&driver->message_lock);
}
