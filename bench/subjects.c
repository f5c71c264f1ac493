/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * subjects.c - see subjects.h.
 */
#include "bench/subjects.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <stdio.h>

/* ---- selection ---------------------------------------------------------------------------- */

bool patterns_add(patterns *p, const char *item)
{
    if (p->count == MAX_PATTERNS)
        return false;
    p->items[p->count++] = item;
    return true;
}

bool patterns_match(const patterns *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (!fnmatch(p->items[i], name, 0))
            return true;
    return false;
}

bool is_wanted(const patterns *p, const char *name)
{
    return !p->count || patterns_match(p, name);
}

/* ---- the list ----------------------------------------------------------------------------- */

/* Queries once whether the subject is available. Entries beyond MAX_SUBJECTS are dropped. */
static void add(subject_list *list, const subject *s)
{
    if (list->count == MAX_SUBJECTS)
        return;
    subject_entry *entry = &list->entries[list->count++];
    *entry = (subject_entry){.subject = s};
    const char *reason = s->absent ? s->absent(s) : NULL;
    if (reason)
        snprintf(entry->absent, sizeof entry->absent, "%s", reason);
}

void subjects_add(subject_list *list, const subject *subjects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add(list, &subjects[i]);
}

/* The shared object stays loaded until the program exits. */
bool subjects_load(subject_list *list, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const subject *s = library ? dlsym(library, "bench_subject") : NULL;
    if (!s) {
        fprintf(stderr, "bench_space: %s\n", dlerror());
        return false;
    }
    add(list, s);
    return true;
}

roster subjects_chosen(const subject_list *list, const patterns *wanted, const patterns *unwanted)
{
    roster out = {.count = 0};
    for (size_t i = 0; i < list->count; i++) {
        const subject_entry *entry = &list->entries[i];
        if (is_present(entry) && is_wanted(wanted, entry->subject->name) &&
            !patterns_match(unwanted, entry->subject->name))
            out.items[out.count++] = entry->subject;
    }
    return out;
}

/* ---- output ------------------------------------------------------------------------------- */

static const char *kind_text(subject_kind kind)
{
    static const char *const texts[] = {"space", "peer", "reference", "heap", "floor", "memory"};
    return texts[kind];
}

void subjects_print(const subject_list *list)
{
    printf("subjects\n");
    for (size_t i = 0; i < list->count; i++) {
        const subject_entry *entry = &list->entries[i];
        subject_kind kind = entry->subject->kind;
        bool ours = kind == SUBJECT_SPACE || kind == SUBJECT_MEMORY;
        printf("  %-28s %-10s", entry->subject->name, kind_text(kind));
        if (!is_present(entry))
            printf(" %s: %s", ours ? "not supported" : "absent", entry->absent);
        printf("\n");
    }
}

void subjects_write(const subject_list *list, qi_json *json)
{
    qi_json_array(json, "subjects");
    for (size_t i = 0; i < list->count; i++) {
        const subject_entry *entry = &list->entries[i];
        qi_json_object(json, NULL);
        qi_json_text(json, "name", entry->subject->name);
        qi_json_text(json, "kind", kind_text(entry->subject->kind));
        qi_json_text(json, "absent", is_present(entry) ? NULL : entry->absent);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}
