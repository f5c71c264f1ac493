/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_vma.c - what is live in the statistics of VMA becomes a trace without frees.
 */
#include <string.h>

#include "tests/support/import_text.h"
#include "tests/support/unit.h"

static const char WHOLE[] =
    "{\"General\": {\"API\": \"Vulkan\"}, \"Total\": {\"BlockCount\": 1},\n"
    "\"DefaultPools\": {\"Type 0\": {\"PreferredBlockSize\": 4096, \"Blocks\": {\"0\": {\n"
    "\"TotalBytes\": 4096, \"Suballocations\": [\n"
    "{\"Offset\": 0, \"Type\": \"BUFFER\", \"Size\": 256, \"Usage\": 2, \"CustomData\": \"0x1\"},\n"
    "{\"Offset\": 256, \"Type\": \"FREE\", \"Size\": 256},\n"
    "{\"Offset\": 512, \"Type\": \"IMAGE_OPTIMAL\", \"Size\": 512, \"Name\": \"a,\\u00e9\"}]},\n"
    "\"1\": {\"Suballocations\": []}}, \"DedicatedAllocations\": [\n"
    "{\"Size\": 18446744073709550846, \"Type\": \"UNKNOWN\"}]}, \"Type 1\": {}},\n"
    "\"CustomPools\": {\"Type 1\": [{\"Name\": \"0 - pool\", \"Flags\": [\"x\"], \"Blocks\": "
    "{\"0\":\n{\"Suballocations\": [{\"Type\": \"BUFFER\", \"Size\": 1, \"Name\": \"\"}]}}}]}}\n";

UNIT(import_vma, live_allocations_come_in_the_order_of_the_file)
{
    import_gives(import_vma, WHOLE,
                 "alloc,1,256,1,0,0,BUFFER\nalloc,2,512,1,0,0,a_\xc3\xa9\n"
                 "alloc,3,18446744073709550846,1,0,0,UNKNOWN\nalloc,4,1,1,0,0,BUFFER\n");
}

UNIT(import_vma, an_empty_allocator_has_no_rows)
{
    import_gives(import_vma, "{\"General\": {}, \"DefaultPools\": {}, \"CustomPools\": {}}", "");
}

UNIT(import_vma, an_allocation_needs_type_and_size)
{
    static const char *const bad[] = {"{\"Type\": \"BUFFER\"}", "{\"Size\": 1}",
                                      "{\"Type\": \"BUFFER\", \"Size\": 0}", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"DefaultPools\": {\"Type 0\": {\"DedicatedAllocations\": [\n %s]}}}", bad[i]);
        import_refuses(import_vma, text, "2:2: an allocation needs a Type, and a Size above 0");
    }
    import_refuses(
        import_vma,
        "{\"DefaultPools\": {\"Type 0\": {\"DedicatedAllocations\": [\n{\"Size\": -1}]}}}",
        "2:10: the number must be an integer from 0 to 2^64 - 1");
    import_refuses(
        import_vma,
        "{\"DefaultPools\": {\"Type 0\": {\"DedicatedAllocations\": [\n{\"Type\": 1}]}}}",
        "2:10: there must be a string, not '1'");
}

UNIT(import_vma, all_bytes_fit_64_bits)
{
    import_refuses(import_vma,
                   "{\"General\": {}, \"DefaultPools\": {\"Type 0\": {\"DedicatedAllocations\": ["
                   "{\"Size\": 18446744073709551615, \"Type\": \"x\"}, {\"Size\": 1, \"Type\": "
                   "\"x\"}]}}}",
                   "1:143: all allocations together have 2^64 bytes or more");
}

UNIT(import_vma, the_parts_have_their_types)
{
    import_refuses(import_vma, "[]", "1:1: there must be an object, not '['");
    import_refuses(import_vma, "{\"DefaultPools\": []}", "1:18: there must be an object, not '['");
    import_refuses(import_vma, "{\"DefaultPools\": {\"Type 0\": 1}}",
                   "1:29: there must be an object, not '1'");
    import_refuses(import_vma, "{\"CustomPools\": {\"Type 0\": {}}}",
                   "1:28: there must be an array, not '{'");
    import_refuses(import_vma, "{\"DefaultPools\": {\"Type 0\": {\"Blocks\": {\"0\": 1}}}}",
                   "1:46: there must be an object, not '1'");
}

UNIT(import_vma, other_statistics_are_refused)
{
    import_refuses(import_vma, "{\"DefaultPools\": {}}",
                   "1:21: there is no General, which VMA 3 writes");
    import_refuses(import_vma, "{\"General\": {}}",
                   "1:16: there are no DefaultPools: the statistics must have the detailed map");
    import_refuses(import_vma, "{\"General\": {}} {}",
                   "1:17: there must be the end of the file, not '{'");
}

UNIT(import_vma, every_beginning_is_read_or_refused)
{
    import_all_beginnings(import_vma, WHOLE);
}
