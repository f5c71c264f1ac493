/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_minimalloc.c - ranges with known lifetimes become traces, and mistakes are refused with
 * their lines.
 */
#include "tests/support/import_text.h"
#include "tests/support/unit.h"

#define HEAD "id,lower,upper,size\n"

static void gives(const char *text, const char *rows)
{
    import_gives(import_minimalloc, text, rows);
}

static void refuses(const char *text, const char *sentence)
{
    import_refuses(import_minimalloc, text, sentence);
}

UNIT(import_minimalloc, frees_come_first_at_equal_times)
{
    gives(HEAD "b,3,9,16\na,0,3,8\n,3,4,1\n",
          "alloc,2,8,1,0,0,a\nfree,2,,,3000,0,\nalloc,1,16,1,3000,0,b\nalloc,3,1,1,3000,0,\n"
          "free,3,,,4000,0,\nfree,1,,,9000,0,\n");
    gives(HEAD, "");
}

UNIT(import_minimalloc, columns_have_any_order)
{
    gives("upper,alignment,size,offset,lower,id\r\n2,64,5,7,1,x\r\n\n3,,6,,1,y",
          "alloc,1,5,64,1000,0,x\nalloc,2,6,1,1000,0,y\nfree,1,,,2000,0,\nfree,2,,,3000,0,\n");
}

UNIT(import_minimalloc, mistakes_have_their_line)
{
    refuses("", "1:1: there is no column ''");
    refuses("id,lower,upper\n", "1:1: the header lacks the column 'size'");
    refuses(HEAD "a,1,2,3\n\nb,2,2,1\n", "4:1: the upper time is not above the lower one, of 'b'");
    refuses(HEAD "a,1,2,x\n", "2:1: this is no number of 64 bits: 'x'");
    const char text[] = HEAD "a,1\0,2";
    CHECK_STR(import_text(import_minimalloc, text, sizeof text - 1)->sentence,
              "2:4: the file has a zero byte");
}

UNIT(import_minimalloc, a_trace_needs_more_than_a_plan)
{
    gives(HEAD "a,0,18446744073709551,1\n",
          "alloc,1,1,1,0,0,a\nfree,1,,,18446744073709551000,0,\n");
    refuses(HEAD "\na,0,1,1\n\nb,0,18446744073709552,1\n",
            "5:1: the upper time, in nanoseconds, does not fit 64 bits");
    refuses("id,lower,upper,size,alignment\na,0,1,1,48\n", "2:1: the alignment is no power of two");
}

UNIT(import_minimalloc, a_file_may_be_longer_than_the_first_room)
{
    static char text[100000] = HEAD;
    char *at = text + sizeof HEAD - 1;
    for (int i = 0; i < 4200; i++)
        at += snprintf(at, 16, ",%d,%d,1\n", i, i + 1);
    const import_result *result = import_text(import_minimalloc, text, (size_t)(at - text));
    CHECK(result->allocations == 4200 && result->frees == 4200);
}

UNIT(import_minimalloc, every_beginning_is_read_or_refused)
{
    import_all_beginnings(import_minimalloc, "id,lower,upper,size,alignment,offset,arena,alias\r\n"
                                             "a,10,20,30,64,128,1,\n\n,11,12,13,,,,\n");
}
