/*
 * external.c - pages of memory that another API, such as Vulkan, created and exported as an opaque
 * file descriptor. The driver imports it as external memory; one buffer covers all of it.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/page.h"
#include "src/base/result.h"

/* ---- which GPU -------------------------------------------------------------------------- */

/* A UUID as nvidia-smi writes it: 8-4-4-4-12 digits. */
typedef struct uuid_text {
    char text[37];
} uuid_text;

static uuid_text uuid_in_words(const void *uuid)
{
    const unsigned char *bytes = uuid;
    uuid_text out = {""};
    size_t length = 0;
    for (size_t i = 0; i < QUIRE_CUDA_UUID_SIZE; i++)
        length += (size_t)snprintf(out.text + length, sizeof out.text - length, "%s%02x",
                                   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    return out;
}

quire_result qi_cuda_check_uuid(const qi_cuda *cuda, const void *uuid)
{
    static const unsigned char none[QUIRE_CUDA_UUID_SIZE];
    if (!uuid || !memcmp(uuid, cuda->uuid, sizeof cuda->uuid))
        return QUIRE_SUCCESS;
    if (!memcmp(cuda->uuid, none, sizeof none))
        return qi_fail_text(
            QUIRE_ERROR_UNSUPPORTED,
            "the memory is of GPU %s, and the driver does not tell which GPU '%s' is",
            uuid_in_words(uuid).text, cuda->name);
    return qi_fail_text(
        QUIRE_ERROR_UNSUPPORTED, "the memory is of GPU %s, and '%s', device %d, is GPU %s",
        uuid_in_words(uuid).text, cuda->name, cuda->device, uuid_in_words(cuda->uuid).text);
}

/* ---- creating and destroying ------------------------------------------------------------ */

quire_result qi_cuda_external_import(qi_cuda *cuda, const quire_cuda_import *import, int descriptor,
                                     qi_cuda_page *page)
{
    const qi_cu_external_desc desc = {
        .type = QI_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        .handle = {.fd = descriptor},
        .size = page->padded,
        .flags = import->is_dedicated ? QI_CUDA_EXTERNAL_MEMORY_DEDICATED : 0,
    };
    page->type = QI_CUDA_PAGE_EXTERNAL;
    page->descriptor = descriptor; /* the page's until the driver accepts it */
    qi_cu_result code = cuda->f.ImportExternalMemory(&page->external, &desc);
    if (code) {
        page->external = NULL;
        return qi_cuda_fail(&cuda->f, code, "cuImportExternalMemory of %s",
                            qi_bytes(page->padded).text);
    }
    page->descriptor = -1; /* now the driver's */
    const qi_cu_external_buffer whole = {.size = page->padded};
    code = cuda->f.ExternalMemoryGetMappedBuffer(&page->block, page->external, &whole);
    if (code) {
        page->block = 0;
        return qi_cuda_fail(&cuda->f, code, "cuExternalMemoryGetMappedBuffer of %s",
                            qi_bytes(page->padded).text);
    }
    page->address = page->block;
    return QUIRE_SUCCESS;
}

/* The driver requires that the buffer is freed before its memory. */
bool qi_cuda_external_destroy(qi_cuda *cuda, qi_cuda_page *page)
{
    qi_cu_result code = page->block ? cuda->f.MemFree(page->block) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->block = 0;
    code = page->external ? cuda->f.DestroyExternalMemory(page->external) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    page->external = NULL;
    qi_cuda_page_close_descriptor(page);
    return true;
}
