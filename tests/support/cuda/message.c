/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * message.c - messages of the fake CUDA driver about misuse by its callers; see fake_cuda.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/driver.h"

void fc_say(const char *id, fc_call call, const char *format, ...)
{
    char text[512];
    int head = snprintf(text, sizeof text, "%s: %s: ", id, fc_call_name(call));
    va_list args;
    va_start(args, format);
    vsnprintf(text + head, sizeof text - (size_t)head, format, args);
    va_end(args);
    if (fc.options.flags & FC_PRINT)
        fprintf(stderr, "fake cuda: %s\n", text);
    fc.message_count++;
    if (fc.messages_kept == FC_MAX_MESSAGES)
        return;
    fc.messages[fc.messages_kept] = strdup(text);
    fc.messages_kept += fc.messages[fc.messages_kept] != NULL;
}

void fc_forget_locked(void)
{
    for (uint32_t i = 0; i < fc.messages_kept; i++)
        free(fc.messages[i]);
    fc.messages_kept = fc.message_count = 0;
}

uint32_t fc_message_count(void)
{
    fc_lock();
    uint32_t count = fc.message_count;
    fc_unlock();
    return count;
}

const char *fc_message(uint32_t index)
{
    fc_lock();
    const char *text = index < fc.messages_kept ? fc.messages[index] : NULL;
    fc_unlock();
    return text;
}

void fc_forget(void)
{
    fc_lock();
    fc_forget_locked();
    fc_unlock();
}
