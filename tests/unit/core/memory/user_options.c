/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * user_options.c - the variable QUIRE_OPTIONS: its words, what they fill, and what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/memory/options.h"

#include "src/base/member.h"
#include "src/core/state/memory.h"
#include "tests/support/fixture.h"
#include "tests/support/log_lines.h"

enum { PAGE = 64 * 1024 };

typedef struct scene {
    fixture f;
    log_lines log;
} scene;

/* Opens a device with these options of the user. */
static void begin(scene *s, const char *words)
{
    *s = (scene){.log = {""}};
    CHECK_EQ(setenv("QUIRE_OPTIONS", words, 1), 0);
    fixture_prepare(&s->f);
    quire_device_options options = {
        .host_memory = unit_memory(),
        .log = {.write = log_lines_keep, .user = &s->log, .level = QUIRE_LOG_WARNING}};
    CHECK_OK(quire_device_create(&s->f.fake.table, &s->f.fake, &options, &s->f.device));
    CHECK_EQ(unsetenv("QUIRE_OPTIONS"), 0);
}

static void end(scene *s)
{
    fixture_end(&s->f);
}

#define CASE(name, words) UNIT_ON(user_options, name, scene, s, begin(s, words), end)

static quire_memory *make(scene *s, const quire_memory_options *options)
{
    CHECK_OK(quire_memory_create(s->f.device, options, &s->f.memory));
    return s->f.memory;
}

CASE(words_fill_what_the_program_leaves_0, " pages.page_size=128K,limit=1M\tfit.algorithm=first\n")
{
    quire_memory *memory = make(s, &(quire_memory_options){.limit = 4 * PAGE});
    CHECK_EQ(memory->policy.page_size, 2 * PAGE);
    CHECK_EQ(memory->fit, QUIRE_FIT_FIRST);
    CHECK_EQ(qi_account_max(&memory->account), 4 * PAGE); /* the program's */
    quire_memory *by_default;
    CHECK_OK(quire_device_default_memory(s->f.device, 1, &by_default));
    CHECK_EQ(by_default->policy.page_size, 2 * PAGE);
    CHECK_EQ(qi_account_max(&by_default->account), 16 * PAGE);
    CHECK_STR(s->log.text, "");
}

UNIT(user_options, every_member_has_a_word)
{
    scene s;
    char words[2048] = "";
    size_t length = 0;
    for (size_t i = 0; i < QI_MEMBER_COUNT; i++) {
        const qi_member *m = &qi_members[i];
        const char *value = m->type == QI_MEMBER_FLAG     ? ""
                            : m->type == QI_MEMBER_CHOICE ? m->words[1]
                            : m->type == QI_MEMBER_LIMIT  ? "50%"
                                                          : "4";
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s%s ", m->key,
                                   *value ? "=" : "", value);
    }
    begin(&s, words);
    CHECK_STR(s.log.text, "");
    for (size_t i = 0; i < QI_MEMBER_COUNT; i++) {
        const qi_member *m = &qi_members[i];
        bool is_one = m->type == QI_MEMBER_FLAG || m->type == QI_MEMBER_CHOICE;
        uint64_t value = m->type == QI_MEMBER_LIMIT ? QUIRE_PERCENT_OF_HEAP(50) : is_one ? 1 : 4;
        CHECK_EQ(qi_member_get(m, &s.f.device->user_options), value);
    }
    make(&s, NULL);
    fixture_end(&s.f);
}

CASE(a_wrong_word_is_a_warning_and_has_no_effect,
     "pagesize=1M fit.slabs=yes limit shards=65 limit=101% fit.algorithm=best "
     "pages.page_size=128K fit.slabs=false")
{
    CHECK_HAS(s->log.text, "QUIRE_OPTIONS: 'pagesize' is no option of a memory; the options are "
                           "fit.algorithm, fit.least_fragmentation, ");
    CHECK_HAS(s->log.text, "pages.retained_empty_bytes, pages.retention_nanoseconds\n");
    CHECK_HAS(s->log.text, "QUIRE_OPTIONS: fit.slabs takes true or false, not 'yes'\n");
    CHECK_HAS(s->log.text,
              "QUIRE_OPTIONS: limit takes a size such as 65536 or 32M, or a percentage of "
              "the heap from 1% to 100%, not ''\n");
    CHECK_HAS(s->log.text,
              "limit takes a size such as 65536 or 32M, or a percentage of the heap from "
              "1% to 100%, not '101%'\n");
    CHECK_HAS(s->log.text, "QUIRE_OPTIONS: shards takes a number from 0 to 64, not '65'\n");
    CHECK_HAS(s->log.text,
              "QUIRE_OPTIONS: fit.algorithm takes segregated, first, buddy or linear, not "
              "'best'\n");
    quire_memory *memory = make(s, NULL);
    CHECK_EQ(memory->policy.page_size, 2 * PAGE);
    CHECK(memory->fit == QUIRE_FIT_SEGREGATED && !memory->space.fit.slabs);
    CHECK_EQ(qi_account_max(&memory->account), UINT64_MAX);
}

UNIT(user_options, a_long_word_is_cut)
{
    scene s;
    char words[400];
    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    begin(&s, words);
    CHECK_HAS(s.log.text, "xxx' is no option of a memory");
    CHECK_OK(quire_device_destroy(&s.f.device));
}

/* This kind of the fake has no elastic pages. */
CASE(options_that_do_not_suit_a_memory_are_left_out, "elastic pages.page_size=128K")
{
    quire_memory *memory = make(s, &(quire_memory_options){.name = "mine"});
    CHECK_STR(s->log.text,
              "memory 'mine' is made without QUIRE_OPTIONS: an elastic memory: pages of "
              "memory kind 0 of backend fake cannot be elastic\n");
    CHECK(!memory->address_space && memory->policy.page_size != 2 * PAGE);
}

CASE(an_error_of_the_program_stays_its_own, "elastic")
{
    CHECK_FAILS(
        quire_memory_create(s->f.device, &(quire_memory_options){.priority = 7}, &s->f.memory),
        QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "priority 7 is not from 0 to 1");
    CHECK_STR(s->log.text, "");
    make(s, NULL);
    CHECK_HAS(quire_last_error(), "priority 7"); /* a call that succeeds leaves the last error */
}
