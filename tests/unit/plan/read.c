/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * read.c - files of items: columns in any order, what is wrong with a line, and random bytes.
 */
#include <stdio.h>
#include <string.h>

#include "src/plan/read.h"

#include "tests/support/host_memory.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

static qi_host host;

/* The names of the items are in `copy` until the next call. */
static quire_result read_text(const char *text, qi_plan_file *file)
{
    static char copy[512];
    CHECK(strlen(text) < sizeof copy);
    strcpy(copy, text);
    CHECK_OK(qi_host_init(&host, unit_memory()));
    return qi_plan_read("plan.csv", copy, strlen(text), &host, file);
}

static void end(qi_plan_file *file)
{
    qi_plan_file_release(file, &host);
    CHECK_EQ(qi_atomic_load_u64(&host.bytes), 0);
}

UNIT(read, columns_may_have_any_order)
{
    qi_plan_file file;
    CHECK_OK(read_text("size,offset,id,upper,lower,alignment\r\n"
                       "10,64,first one,5,0,32\r\n"
                       "\n"
                       "7,0,,9,5,0",
                       &file));
    CHECK_EQ(file.count, 2);
    CHECK(file.items[0].size == 10 && file.items[0].first_use == 0 && file.items[0].last_use == 4);
    CHECK(file.items[0].alignment == 32 && file.items[0].fixed_offset == 64);
    CHECK(file.items[0].is_fixed && file.items[1].is_fixed);
    CHECK_STR(file.items[0].name, "first one");
    CHECK(file.items[1].size == 7 && file.items[1].last_use == 8 && !file.items[1].name);
    end(&file);
    CHECK_OK(read_text("id,lower,upper,size\n", &file));
    CHECK(!file.count && !file.items);
    end(&file);
}

UNIT(read, what_is_wrong_names_the_line)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "plan.csv:1: there is no column ''"},
        {"id,lower,upper\n", "plan.csv:1: the header lacks the column 'size'"},
        {"id,lower,upper,size,color\n", "plan.csv:1: there is no column 'color'"},
        {"id,lower,upper,size,id\n", "plan.csv:1: there are two columns 'id'"},
        {"id,lower,upper,size\na,0,1\n", "plan.csv:2: the line lacks the column 'size'"},
        {"id,lower,upper,size\na,0,1,2\nb,0,1,2,3\n",
         "plan.csv:3: the line has more cells than the header:"},
        {"id,lower,upper,size\na,0,1,x2\n", "plan.csv:2: this is no number of 64 bits: 'x2'"},
        {"id,lower,upper,size\na,0,,2\n", "plan.csv:2: this is no number of 64 bits: ''"},
        {"id,lower,upper,size\na,0,1,-2\n", "no number of 64 bits: '-2'"},
        {"id,lower,upper,size\na,0,1,18446744073709551616\n", "'18446744073709551616'"},
        {"id,lower,upper,size\na,0,1,0\n", "plan.csv:2: the size is 0, of 'a'"},
        {"id,lower,upper,size\na,0,1,1\nb,5,5,1\n",
         "plan.csv:3: the upper time is not above the lower one, of 'b'"},
        {"id,lower,upper,size,alias\na,0,1,1,4294967296\n", "no number of 32 bits, of 'a'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qi_plan_file file;
        CHECK_FAILS(read_text(cases[i].text, &file), QUIRE_ERROR_BAD_FILE);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK(!file.count && !file.items);
        end(&file);
    }
}

UNIT(read, cells_of_further_columns_may_be_empty)
{
    qi_plan_file file;
    CHECK_OK(read_text("id,lower,upper,size,alignment,offset,arena,alias\n"
                       "a,0,1,1,,,,\n"
                       "b,0,1,1,8,16,2,3\n",
                       &file));
    const quire_plan_item *a = &file.items[0], *b = &file.items[1];
    CHECK(!a->alignment && !a->is_fixed && !a->arena && !a->alias_group);
    CHECK(b->alignment == 8 && b->is_fixed && b->fixed_offset == 16);
    CHECK(b->arena == 2 && b->alias_group == 3);
    end(&file);
}

UNIT(read, random_texts_are_read_or_refused)
{
    static const char letters[] =
        "id,lower,upper,size,alignment,offset,arena,alias\n\r,,,0123456789";
    test_random rng = {5};
    for (int step = 0; step < 20000; step++) {
        char text[128] = "id,lower,upper,size\n";
        size_t length = random_below(&rng, 4) ? strlen(text) : 0;
        for (uint64_t more = random_below(&rng, 60); more; more--)
            text[length++] = letters[random_below(&rng, sizeof letters - 1)];
        text[length] = '\0';
        qi_plan_file file;
        quire_result result = read_text(text, &file);
        CHECK(!result || result == QUIRE_ERROR_BAD_FILE || result == QUIRE_ERROR_INVALID_ARGUMENT);
        end(&file);
    }
}

UNIT(read, every_failure_of_host_memory_is_reported)
{
    qi_plan_file file;
    for (uint64_t at = 1; at <= 1; at++) {
        test_memory_fail(unit_memory_state(), at, false);
        CHECK_FAILS(read_text("id,lower,upper,size,offset\na,0,1,2,0\n", &file),
                    QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(!file.count && !file.items);
        end(&file);
    }
    test_memory_fail(unit_memory_state(), 0, false);
}
