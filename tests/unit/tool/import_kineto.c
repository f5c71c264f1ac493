/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_kineto.c - memory events of torch.profiler become the trace of one device.
 */
#include <string.h>

#include "tests/support/import_text.h"
#include "tests/support/unit.h"

#define EVENT(ts, addr, bytes, type, id)                                                           \
    "{\"ph\": \"i\", \"name\": \"[memory]\", \"ts\": " #ts ", \"args\": {\"Total Allocated\": 9, " \
    "\"Addr\": " #addr ", \"Bytes\": " #bytes ", \"Device Type\": " #type ", \"Device Id\": " #id  \
    "}}"
#define FILE_OF(events) "{\"schemaVersion\": 1, \"traceEvents\": [" events "], \"more\": [1]}"

static void gives(const char *text, const char *rows, const char *note)
{
    import_gives(import_kineto, text, rows);
    CHECK_STR(import_text(import_kineto, text, strlen(text))->note, note);
}

static void refuses(const char *text, const char *sentence)
{
    import_refuses(import_kineto, text, sentence);
}

UNIT(import_kineto, events_are_sorted_by_time)
{
    gives(FILE_OF(EVENT(3.5, 64, -512, 1, 0) "," EVENT(1.0019, 64, 512, 1, 0) "," EVENT(
              2, 128, 1024, 1, 0) "," EVENT(2, 128, -1024, 1, 0)),
          "alloc,1,512,512,1001,0,\nalloc,2,1024,512,2000,0,\nfree,2,,,2000,0,\n"
          "free,1,,,3500,0,\n",
          "Device Id 0 of Device Type 1");
}

UNIT(import_kineto, addresses_are_signed_numbers)
{
    gives("[" EVENT(1, -4096, 8, 0, -1) "," EVENT(2, 18446744073709547520, -8, 0, -1) "]",
          "alloc,1,8,64,1000,0,\nfree,1,,,2000,0,\n", "Device Id -1 of Device Type 0");
}

UNIT(import_kineto, other_events_are_skipped)
{
    gives("{\"traceEvents\": [{\"name\": \"aten::empty\", \"ts\": -1e3, \"args\": {\"Bytes\": "
          "\"x\", \"Addr\": 1.5, \"more\": {\"deep\": []}}},\n{\"ts\": \"x\", \"name\": 7, "
          "\"args\": []},\n{\"args\": {\"Device Id\": 0, \"Device Type\": 1, \"Bytes\": 512, "
          "\"Addr\": 64}, \"ts\": 1, \"name\": \"[memory]\"},\n" EVENT(1, 64, 0, 1, 0) "]}",
          "alloc,1,512,512,1000,0,\n", "Device Id 0 of Device Type 1");
}

UNIT(import_kineto, the_device_with_the_most_bytes_is_chosen)
{
    static const char text[] =
        FILE_OF(EVENT(1, 64, 512, 1, 0) "," EVENT(2, 64, 513, 1, 1) "," EVENT(3, 64, 8, 0, -1));
    gives(text, "alloc,1,513,512,2000,0,\n", "Device Id 1 of Device Type 1, one of 3 devices");
    CHECK_STR(import_device(import_kineto, "0", text, sizeof text - 1)->rows,
              "alloc,1,512,512,1000,0,\n");
    CHECK_STR(import_device(import_kineto, "cpu", text, sizeof text - 1)->rows,
              "alloc,1,8,64,3000,0,\n");
    CHECK_STR(import_device(import_kineto, "2", text, sizeof text - 1)->sentence,
              "1:450: no [memory] event is of the device '2'");
}

UNIT(import_kineto, frees_are_left_out_or_made_up)
{
    static const char text[] = FILE_OF(EVENT(1, 64, -512, 1, 0) "," EVENT(
        2, 64, 512, 1, 0) "," EVENT(3, 64, 1024, 1, 0) "," EVENT(4, 64, -1024, 1, 0));
    gives(text,
          "alloc,1,512,512,2000,0,\nfree,1,,,3000,0,\nalloc,2,1024,512,3000,0,\n"
          "free,2,,,4000,0,\n",
          "Device Id 0 of Device Type 1; frees made up for addresses that were allocated again: 1");
    CHECK_EQ(import_text(import_kineto, text, sizeof text - 1)->left_out, 1);
}

UNIT(import_kineto, an_event_must_have_its_fields)
{
    refuses("[\n {\"name\": \"[memory]\"}]",
            "2:2: a [memory] event has no ts of 64 bits, in decimal microseconds");
    refuses("[" EVENT(-1, 1, 1, 1, 0) "]",
            "1:2: a [memory] event has no ts of 64 bits, in decimal microseconds");
    refuses("[" EVENT(1e3, 1, 1, 1, 0) "]",
            "1:2: a [memory] event has no ts of 64 bits, in decimal microseconds");
    refuses("[" EVENT(18446744073709551, 1, 1, 1, 0) "]",
            "1:2: a [memory] event has no ts of 64 bits, in decimal microseconds");
    refuses("[{\"name\": \"[memory]\", \"ts\": 1}]",
            "1:2: a [memory] event has no integer Addr, as in old versions of PyTorch");
    refuses("[" EVENT(1, 1, 1.5, 1, 0) "]", "1:2: a [memory] event has no integer Bytes");
    refuses("[" EVENT(1, 1, 1, null, 0) "]",
            "1:2: a [memory] event has no integers Device Type and Device Id");
    refuses("[" EVENT(1, 1, 1, 1, 9223372036854775808) "]",
            "1:2: a [memory] event has no integers Device Type and Device Id");
    refuses("[" EVENT(1, 0, 1, 1, 0) "]", "1:2: a [memory] event has bytes at address 0");
}

UNIT(import_kineto, a_file_must_have_events)
{
    refuses("{}", "1:3: there are no traceEvents");
    refuses("{\"traceEvents\": []}",
            "1:20: there is no [memory] event: profile with profile_memory=True");
    refuses("{\"traceEvents\": [], \"traceEvents\": []}", "1:35: there are traceEvents already");
    refuses("[] 1", "1:4: there must be the end of the file, not '1'");
    refuses("{\"traceEvents\": [1]}", "1:18: there must be an object, not '1'");
    refuses("7", "1:1: there must be an object, not '7'");
}

UNIT(import_kineto, the_number_of_devices_is_bounded)
{
    static char text[16384];
    char *at = text + snprintf(text, sizeof text, "[");
    for (int i = 0; i <= 64; i++)
        at += snprintf(at, 200,
                       "%s\n{\"name\": \"[memory]\", \"ts\": 1, \"args\": {\"Addr\": 1, \"Bytes\": "
                       "1, \"Device Type\": 1, \"Device Id\": %d}}",
                       i ? "," : "", i);
    snprintf(at, 8, "]");
    refuses(text, "66:1: a [memory] event is of the 65th device");
}

UNIT(import_kineto, every_beginning_is_read_or_refused)
{
    import_all_beginnings(
        import_kineto,
        FILE_OF(EVENT(1.5, 64, 512, 1, 0) ",\n{\"name\": \"\\u00e9\", \"b\": "
                                          "[true, false, null]}," EVENT(2, 64, -512, 1, 0)));
}
