/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_fuzz.c - input bytes become a file of another program, which is imported.
 *
 * The first byte selects the reader and one of its beginnings, the others are the rest of the file.
 * Each import has rows that are a trace, or a sentence.
 *
 * A target of libFuzzer (meson option fuzz) that aborts at the first contradiction; without it a
 * plain program that generates inputs from a seed.
 */
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/import_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 13 };

static const struct {
    import_reader *read;
    const char *beginning;
} CHOICES[] = {
    {import_rmm, ""},
    {import_rmm, "Thread,Time,Action,Pointer,Size,Stream\n"},
    {import_rmm, "Thread,Time,Action,Pointer,Size,Stream\n7,00:00:01.0,allocate,0x1,1,0x0\n"},
    {import_kineto, ""},
    {import_kineto, "{\"traceEvents\": ["},
    {import_kineto, "[{\"name\": \"[memory]\", \"ts\": 1, \"args\": {\"Addr\": 1, \"Bytes\": 1, "
                    "\"Device Type\": 1, \"Device Id\": 0"},
    {import_minimalloc, ""},
    {import_minimalloc, "id,lower,upper,size\n"},
    {import_minimalloc, "upper,lower,size,id,alignment\n9,1,5,a,64\n"},
    {import_vma, ""},
    {import_vma, "{\"General\": {}, \"DefaultPools\": {\"Type 0\": {"},
    {import_vma, "{\"General\": {}, \"DefaultPools\": {\"Type 0\": {\"DedicatedAllocations\": [{"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[MOST_BYTES];
    if (!size || size > MOST_BYTES / 2)
        return 0;
    const size_t choice = data[0] % (sizeof CHOICES / sizeof *CHOICES);
    const char *beginning = CHOICES[choice].beginning;
    const size_t length = strlen(beginning);
    memcpy(text, beginning, length);
    memcpy(text + length, data + 1, size - 1);
    const import_result *result = import_text(CHOICES[choice].read, text, length + size - 1);
    CHECK(result->is_good == !result->sentence[0]);
    CHECK(result->frees <= result->allocations);
    return 0;
}
