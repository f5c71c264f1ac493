/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * member.c - a row for each member of quire_memory_options; reading, writing and parsing follow
 * from the rows.
 */
#include "src/base/member.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts -------------------------------------------------------------------------------- */

/* strtoull alone would accept blanks, a sign and an empty text. */
bool qi_parse_number(const char *text, uint64_t *number, const char **rest)
{
    char *end = NULL;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *number = value;
    *rest = end;
    return !errno;
}

/* Rejects 0, a second suffix, and values that overflow 64 bits after the shift. */
bool qi_parse_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMGT";
    const char *rest = NULL;
    if (!qi_parse_number(text, size, &rest))
        return false;
    const char *unit = *rest ? strchr(units, toupper((unsigned char)*rest)) : NULL;
    if (unit) {
        unsigned shift = 10 * (unsigned)(unit - units + 1);
        if (*size > UINT64_MAX >> shift)
            return false;
        *size <<= shift;
        rest++;
    }
    return !*rest && *size;
}

bool qi_parse_word(const char *const *words, const char *text, uint32_t *index)
{
    for (uint32_t i = 0; words[i]; i++) {
        if (strcmp(text, words[i]))
            continue;
        *index = i;
        return true;
    }
    return false;
}

/* ---- the table ---------------------------------------------------------------------------- */

const char *const qi_fit_words[] = {"segregated", "first", "buddy", "linear", NULL};
static const char *const GROWTHS[] = {"last", "largest", "reserved", NULL};
static const char *const DEDICATED[] = {"by_size", "always", "never", NULL};

#define MEMBER(field, type) #field, type, offsetof(quire_memory_options, field)
const qi_member qi_members[QI_MEMBER_COUNT] = {
    {MEMBER(fit.algorithm, QI_MEMBER_CHOICE), 0, qi_fit_words},
    {MEMBER(fit.least_fragmentation, QI_MEMBER_FLAG), 0, NULL},
    {MEMBER(fit.slabs, QI_MEMBER_FLAG), 0, NULL},
    {MEMBER(fit.granule, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(fit.max_alignment, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(elastic, QI_MEMBER_FLAG), 0, NULL},
    {MEMBER(shards, QI_MEMBER_NUMBER), 64, NULL},
    {MEMBER(limit, QI_MEMBER_LIMIT), 0, NULL},
    {MEMBER(within_budget, QI_MEMBER_FLAG), 0, NULL},
    {MEMBER(map_on_demand, QI_MEMBER_FLAG), 0, NULL},
    {MEMBER(address_space, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.page_size, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.first_page_size, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.growth_percent, QI_MEMBER_PERCENT), 1000, NULL},
    {MEMBER(pages.growth, QI_MEMBER_CHOICE), 0, GROWTHS},
    {MEMBER(pages.max_page, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.max_pages, QI_MEMBER_NUMBER), UINT32_MAX, NULL},
    {MEMBER(pages.request_factor, QI_MEMBER_NUMBER), UINT32_MAX, NULL},
    {MEMBER(pages.page_granularity, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.dedicated, QI_MEMBER_CHOICE), 0, DEDICATED},
    {MEMBER(pages.dedicated_threshold, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.size_granularity, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.extra_padding, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.retained_empty_bytes, QI_MEMBER_BYTES), 0, NULL},
    {MEMBER(pages.retention_nanoseconds, QI_MEMBER_TIME), 0, NULL},
};

_Static_assert(sizeof(quire_fit) == sizeof(uint32_t) && sizeof(quire_growth) == sizeof(uint32_t) &&
                   sizeof(quire_dedicated) == sizeof(uint32_t),
               "qi_member_get and qi_member_set copy enums as 32-bit numbers");

const qi_member *qi_member_find(const char *key, size_t length)
{
    for (const qi_member *m = qi_members; m < qi_members + QI_MEMBER_COUNT; m++)
        if (strlen(m->key) == length && !memcmp(m->key, key, length))
            return m;
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------- */

bool qi_member_is_wide(const qi_member *m)
{
    return m->type == QI_MEMBER_BYTES || m->type == QI_MEMBER_TIME || m->type == QI_MEMBER_LIMIT;
}

uint64_t qi_member_get(const qi_member *m, const quire_memory_options *options)
{
    const unsigned char *at = (const unsigned char *)options + m->offset;
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (m->type == QI_MEMBER_FLAG)
        return *(const bool *)at;
    if (qi_member_is_wide(m))
        memcpy(&wide, at, sizeof wide);
    else
        memcpy(&narrow, at, sizeof narrow);
    return wide + narrow;
}

void qi_member_set(const qi_member *m, quire_memory_options *options, uint64_t value)
{
    unsigned char *at = (unsigned char *)options + m->offset;
    uint32_t narrow = (uint32_t)value;
    if (m->type == QI_MEMBER_FLAG)
        *(bool *)at = value != 0;
    else if (qi_member_is_wide(m))
        memcpy(at, &value, sizeof value);
    else
        memcpy(at, &narrow, sizeof narrow);
}

/* Writes the words of a choice as "a, b or c". */
static void list_words(const char *const *words, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; words[i]; i++) {
        const char *before = !i ? "" : words[i + 1] ? ", " : " or ";
        length += (size_t)snprintf(text + length, size - length, "%s%s", before, words[i]);
    }
}

qi_wanted_text qi_member_wanted(const qi_member *m)
{
    qi_wanted_text wanted;
    char *text = wanted.text;
    const size_t size = sizeof wanted.text;
    switch (m->type) {
    case QI_MEMBER_FLAG:
        snprintf(text, size, "true or false");
        break;
    case QI_MEMBER_BYTES:
        snprintf(text, size, "a size such as 65536, 64K or 32M");
        break;
    case QI_MEMBER_TIME:
        snprintf(text, size, "a number of nanoseconds");
        break;
    case QI_MEMBER_LIMIT:
        snprintf(text, size,
                 "a size such as 65536 or 32M, or a percentage of the heap from 1%% to 100%%");
        break;
    case QI_MEMBER_NUMBER:
    case QI_MEMBER_PERCENT:
        snprintf(text, size, "a %s from 0 to %" PRIu32,
                 m->type == QI_MEMBER_NUMBER ? "number" : "percentage", m->max);
        break;
    case QI_MEMBER_CHOICE:
        list_words(m->words, text, size);
    }
    return wanted;
}

bool qi_member_parse(const qi_member *m, const char *text, uint64_t *value)
{
    const char *rest = NULL;
    uint32_t word = 0;
    switch (m->type) {
    case QI_MEMBER_FLAG:
        *value = !strcmp(text, "true");
        return *value || !strcmp(text, "false");
    case QI_MEMBER_BYTES:
        return qi_parse_size(text, value);
    case QI_MEMBER_TIME:
        return qi_parse_number(text, value, &rest) && !*rest;
    case QI_MEMBER_LIMIT:
        if (!qi_parse_number(text, value, &rest) || strcmp(rest, "%"))
            return qi_parse_size(text, value);
        *value = *value && *value <= 100 ? QUIRE_PERCENT_OF_HEAP(*value) : 0;
        return *value != 0;
    case QI_MEMBER_NUMBER:
    case QI_MEMBER_PERCENT:
        return qi_parse_number(text, value, &rest) && !*rest && *value <= m->max;
    case QI_MEMBER_CHOICE:
        if (!qi_parse_word(m->words, text, &word))
            return false;
        *value = word;
    }
    return true;
}
