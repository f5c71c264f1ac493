/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_rmm.c - logs of RMM become traces, and each mistake in one is refused where it is.
 */
#include "tests/support/import_text.h"
#include "tests/support/unit.h"

#define HEAD "Thread,Time,Action,Pointer,Size,Stream\n"

static void gives(const char *text, const char *rows)
{
    import_gives(import_rmm, text, rows);
}

static void refuses(const char *text, const char *sentence)
{
    import_refuses(import_rmm, text, sentence);
}

UNIT(import_rmm, pointers_become_ids)
{
    gives(HEAD "7,00:00:01.000002,allocate,0x7f0000000200,1000,0x0\n"
               "8,00:00:01.000003,allocate,0x7f0000000600,24,0x55d0\n"
               "7,00:00:02.5,free,0x7f0000000200,1000,0x0\n"
               "7,00:00:03.000000,allocate,0x7f0000000200,16,0x2\n",
          "alloc,1,1000,256,1000002000,0,\nalloc,2,24,256,1000003000,21968,\n"
          "free,1,,,2500000000,0,\nalloc,3,16,256,3000000000,2,\n");
}

UNIT(import_rmm, older_and_newer_logs_differ_in_prefixes_and_colons)
{
    gives(HEAD "7,00:00:01:000002,allocate,7F00,1000,ff\n7,00:00:02,free,0X7f00,1000,0\r\n",
          "alloc,1,1000,256,1000002000,255,\nfree,1,,,2000000000,0,\n");
    gives("Thread,Time,Action,Pointer,Size,Stream\r\n"
          "7,23:59:60.123456789,allocate,139637976727552,1,0x1",
          "alloc,1,1,256,86400123456789,1,\n");
}

UNIT(import_rmm, failures_and_allocations_of_0_bytes_have_no_row)
{
    gives(HEAD "7,00:00:01.0,allocate failure,(nil),1000,0x0\n"
               "7,00:00:01.0,allocate failure,0x0,1000,0x0\n"
               "7,00:00:01.0,allocate,0x0,0,0x0\n7,00:00:01.0,free,0x0,0,0x0\n"
               "7,00:00:01.0,allocate,(nil),0,0\n7,00:00:01.0,free,(nil),0,0\n",
          "");
    gives(HEAD, "");
}

UNIT(import_rmm, frees_of_unknown_addresses_are_left_out)
{
    gives(HEAD "7,00:00:01.0,free,0x100,1,0x0\n7,00:00:01.0,allocate,0x100,1,0x0\n",
          "alloc,1,1,256,1000000000,0,\n");
    const char text[] = HEAD "7,00:00:01.0,free,0x100,1,0x0\n7,00:00:01.0,free,0x100,0,0x0\n";
    CHECK_EQ(import_text(import_rmm, text, sizeof text - 1)->left_out, 1);
}

UNIT(import_rmm, a_line_is_never_before_the_one_above)
{
    gives(HEAD "7,10:00:02.000000,allocate,1,1,0\n8,10:00:01.999999,allocate,2,1,0\n"
               "8,10:00:02.000001,allocate,3,1,0\n",
          "alloc,1,1,256,36002000000000,0,\nalloc,2,1,256,36002000000000,0,\n"
          "alloc,3,1,256,36002000001000,0,\n");
}

UNIT(import_rmm, a_clock_that_jumps_back_is_past_midnight)
{
    gives(HEAD "7,23:59:59.000000,allocate,1,1,0\n8,00:00:01.000000,allocate,2,1,0\n"
               "8,23:00:00.000000,allocate,3,1,0\n8,00:00:00.000000,free,3,1,0\n",
          "alloc,1,1,256,86399000000000,0,\nalloc,2,1,256,86401000000000,0,\n"
          "alloc,3,1,256,169200000000000,0,\nfree,3,,,172800000000000,0,\n");
    /* late lines of the day before */
    gives(HEAD "7,00:00:00.000000,allocate,1,1,0\n8,23:59:59.999999,allocate,2,1,0\n"
               "8,00:00:00.000001,allocate,3,1,0\n",
          "alloc,1,1,256,0,0,\nalloc,2,1,256,86399999999000,0,\n"
          "alloc,3,1,256,86400000001000,0,\n");
}

UNIT(import_rmm, the_header_is_required)
{
    refuses("", "1:1: the file must begin with Thread,Time,Action,Pointer,Size,Stream");
    refuses("Thread,Tome", "1:9: the file must begin with Thread,Time,Action,Pointer,Size,Stream");
    refuses("Thread,Time,Action,Pointer,Size,Stream,More\n",
            "1:39: the header must be Thread,Time,Action,Pointer,Size,Stream");
}

UNIT(import_rmm, a_line_has_six_columns)
{
    refuses(HEAD "\n", "2:1: the line ends before its last column: "
                       "Thread,Time,Action,Pointer,Size,Stream");
    refuses(HEAD "7,00:00:01.0,free,1\n", "2:20: the line ends before its last column: "
                                          "Thread,Time,Action,Pointer,Size,Stream");
    refuses(HEAD "7,00:00:01.0,free,1,1,0,\n",
            "2:24: the line has more columns than Thread,Time,Action,Pointer,Size,Stream");
    refuses(HEAD
            "7,00:00:01.0,free,1111111111222222222233333333334444444444555555555566666666667777\n",
            "2:82: the cell is longer than 63 bytes, or has a zero byte");
    const char text[] = HEAD "7\0,";
    CHECK_STR(import_text(import_rmm, text, sizeof text - 1)->sentence,
              "2:2: the cell is longer than 63 bytes, or has a zero byte");
}

UNIT(import_rmm, each_cell_is_checked)
{
    refuses(HEAD "x,00:00:01.0,free,1,1,0\n", "2:1: the thread must be a decimal number, not 'x'");
    refuses(HEAD "7,00:00:01.0,freed,1,1,0\n",
            "2:14: the action must be allocate, free or allocate failure, not 'freed'");
    refuses(HEAD "7,00:00:01.0,free,0x,1,0\n",
            "2:19: the pointer must be a number of 64 bits, not '0x'");
    refuses(HEAD "7,00:00:01.0,free,10000000000000000,1,0\n",
            "2:19: the pointer must be a number of 64 bits, not '10000000000000000'");
    refuses(HEAD "7,00:00:01.0,free,1,-1,0\n",
            "2:21: the size must be a decimal number of 64 bits, not '-1'");
    refuses(HEAD "7,00:00:01.0,free,1,18446744073709551616,0\n",
            "2:21: the size must be a decimal number of 64 bits, not '18446744073709551616'");
    refuses(HEAD "7,00:00:01.0,free,1,1,default\n",
            "2:23: the stream must be a hexadecimal number of 64 bits, not 'default'");
}

UNIT(import_rmm, times_are_of_a_day)
{
    static const char *const bad[] = {"",          "24:00:00.0", "00:60:00.0",         "00:00:61.0",
                                      "0:00:00.0", "00:00",      "00:00:00.x",         "00-00-00",
                                      "12345678",  "00:00:0.1",  "00:00:00.1234567890"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128], sentence[128];
        snprintf(text, sizeof text, HEAD "7,%s,free,1,1,0\n", bad[i]);
        snprintf(sentence, sizeof sentence, "2:3: the time must be HH:MM:SS.microseconds, not '%s'",
                 bad[i]);
        refuses(text, sentence);
    }
}

UNIT(import_rmm, an_address_has_one_live_allocation)
{
    refuses(HEAD "7,00:00:01.0,allocate,0x1f,1,0\n7,00:00:01.0,allocate,0x1f,1,0\n",
            "3:1: there is a live allocation already at 0x1f");
    refuses(HEAD "7,00:00:01.0,allocate,0x0,1,0\n", "2:1: bytes are allocated at 0x0");
}

UNIT(import_rmm, every_beginning_is_read_or_refused)
{
    import_all_beginnings(import_rmm, HEAD "7,00:00:01.000002,allocate,0x7f0000000200,1000,0x0\r\n"
                                           "7,00:00:01.000002,allocate failure,(nil),1000,0x0\n"
                                           "7,00:00:02.5,free,0x7f0000000200,1000,0x0\n");
}
