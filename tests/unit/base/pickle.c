/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pickle.c - the bytes of each value, and what a second reader makes of them. The Python tests read
 * the same with pickle itself.
 */
#include "src/base/pickle.h"

#include <stdio.h>

#include "tests/support/unit.h"
#include "tests/support/unpickle.h"

static void begin(qi_pickle *p)
{
    gather_anew(0);
    qi_pickle_init(p, gather, NULL);
}

static void end(qi_pickle *p)
{
    (void)p;
}

#define CASE(name) UNIT_ON(pickle, name, qi_pickle, p, begin(p), end)

static void expect_bytes(qi_pickle *p, const char *bytes, size_t size)
{
    CHECK_OK(qi_pickle_finish(p));
    CHECK_EQ(gathered.length, size);
    CHECK(!memcmp(gathered.text, bytes, size));
}

#define EXPECT(p, text) expect_bytes(p, text, sizeof text - 1)

CASE(a_small_number_has_four_bytes)
{
    qi_pickle_number(p, NULL, 0x7fffffff);
    EXPECT(p, "\x80\x04J\xff\xff\xff\x7f.");
}

CASE(a_large_number_keeps_its_sign_bit_free)
{
    qi_pickle_list(p, NULL);
    qi_pickle_number(p, NULL, UINT64_C(0x80000000));
    qi_pickle_number(p, NULL, UINT64_C(0x7fffffffff));
    qi_pickle_number(p, NULL, UINT64_C(0x8000000000));
    qi_pickle_number(p, NULL, UINT64_MAX);
    qi_pickle_end_list(p);
    EXPECT(p, "\x80\x04](\x8a\x05\0\0\0\x80\0\x8a\x05\xff\xff\xff\xff\x7f\x8a\x06\0\0\0\0\x80\0"
              "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"
              "e.");
}

CASE(truth_pairs_and_empty_containers)
{
    qi_pickle_dict(p, NULL);
    qi_pickle_bool(p, "a", true);
    qi_pickle_bool(p, "b", false);
    qi_pickle_pair(p, "c", 1, 2);
    qi_pickle_list(p, "d");
    qi_pickle_end_list(p);
    qi_pickle_dict(p, "e");
    qi_pickle_end_dict(p);
    qi_pickle_end_dict(p);
    EXPECT(p, "\x80\x04}(\x8c\x01"
              "a\x88\x8c\x01"
              "b\x89\x8c\x01"
              "cJ\1\0\0\0J\2\0\0\0\x86\x8c\x01"
              "d](e\x8c\x01"
              "e}(uu.");
}

CASE(a_text_is_valid_utf_8_of_any_length)
{
    static char text[301];
    memset(text, 'x', 300);
    qi_pickle_list(p, NULL);
    qi_pickle_text(p, NULL, "");
    qi_pickle_text(p, NULL, "a\xff");
    qi_pickle_text(p, NULL, text + 45);
    qi_pickle_text(p, NULL, text + 44);
    qi_pickle_end_list(p);
    CHECK_OK(qi_pickle_finish(p));
    json_t *root = unpickle();
    CHECK_STR(json_string_value(json_array_get(root, 0)), "");
    CHECK_STR(json_string_value(json_array_get(root, 1)), "a\xef\xbf\xbd");
    CHECK_EQ(json_string_length(json_array_get(root, 2)), 255);
    CHECK_EQ(json_string_length(json_array_get(root, 3)), 256);
    json_decref(root);
}

CASE(a_long_list_has_groups_of_a_thousand)
{
    qi_pickle_list(p, NULL);
    for (uint64_t i = 0; i < 2001; i++) {
        qi_pickle_list(p, NULL);
        qi_pickle_number(p, NULL, i);
        qi_pickle_end_list(p);
    }
    qi_pickle_end_list(p);
    CHECK_OK(qi_pickle_finish(p));
    /* two bytes of the protocol, eight per element, the list with its mark, two more groups, the
       end */
    CHECK_EQ(gathered.length, 2 + 2001 * 8 + 2 + 2 * 2 + 2);
    json_t *root = unpickle();
    CHECK_EQ(json_array_size(root), 2001);
    for (size_t i = 0; i < 2001; i++)
        CHECK_EQ(json_integer_value(json_array_get(json_array_get(root, i), 0)), i);
    json_decref(root);
}

UNIT(pickle, a_refused_piece_ends_the_calls)
{
    qi_pickle p;
    gather_anew(1);
    qi_pickle_init(&p, gather, NULL);
    qi_pickle_list(&p, NULL);
    for (int i = 0; i < 3000; i++)
        qi_pickle_bool(&p, NULL, true);
    qi_pickle_end_list(&p);
    CHECK_FAILS(qi_pickle_finish(&p), QUIRE_ERROR_BAD_FILE);
    CHECK_EQ(gathered.pieces, 1);
}
