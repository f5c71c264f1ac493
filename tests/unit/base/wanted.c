/*
 * wanted.c - which device the words of a caller select.
 */
#include "src/base/wanted.h"
#include "tests/support/unit.h"

UNIT(wanted, no_words_select_any_device)
{
    CHECK(qi_is_wanted(NULL, 0, "llvmpipe"));
    CHECK(qi_is_wanted("", 7, ""));
}

UNIT(wanted, digits_select_by_index_only)
{
    CHECK(qi_is_wanted("1", 1, "RTX 2080"));
    CHECK(!qi_is_wanted("2080", 1, "RTX 2080"));
    CHECK(qi_is_wanted("007", 7, ""));
    CHECK(!qi_is_wanted("4294967296", 0, "")); /* does not wrap around */
    CHECK(qi_is_wanted("X 2080", 0, "RTX 2080"));
}

UNIT(wanted, a_part_of_the_name_selects_in_any_case)
{
    CHECK(qi_is_wanted("nvidia h200", 3, "NVIDIA H200 NVL"));
    CHECK(qi_is_wanted("NVL", 3, "nvidia h200 nvl"));
    CHECK(qi_is_wanted("aab", 0, "aaab")); /* a second match starts inside the first */
    CHECK(!qi_is_wanted("h200x", 3, "NVIDIA H200"));
    CHECK(!qi_is_wanted("a", 0, ""));
    CHECK(!qi_is_wanted("-1", 1, "RTX"));
}
