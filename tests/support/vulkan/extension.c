/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * extension.c - names and bits of the extensions that layout.h lists.
 */
#include <string.h>

#include "tests/support/vulkan/driver.h"

typedef struct extension {
    const char *name;
    bool of_instance;
} extension;

enum { INSTANCE = 1, DEVICE = 0 };

static const extension EXTENSIONS[FV_EXTENSION_COUNT] = {
#define X(bit, name, scope, core) {name, scope},
    FV_EXTENSIONS(X)
#undef X
};

uint32_t fv_extension_bit(const char *name, bool of_instance, uint32_t offered)
{
    for (uint32_t i = 0; i < FV_EXTENSION_COUNT; i++)
        if (EXTENSIONS[i].of_instance == of_instance && offered & (UINT32_C(1) << i) &&
            !strcmp(EXTENSIONS[i].name, name))
            return UINT32_C(1) << i;
    return UINT32_MAX;
}

uint32_t fv_extensions_list(bool of_instance, uint32_t offered, VkExtensionProperties *list,
                            uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FV_EXTENSION_COUNT; i++) {
        if (EXTENSIONS[i].of_instance != of_instance || !(offered & (UINT32_C(1) << i)))
            continue;
        if (list && count < room) {
            list[count] = (VkExtensionProperties){.specVersion = 1};
            strcpy(list[count].extensionName, EXTENSIONS[i].name);
        }
        count++;
    }
    return count;
}
