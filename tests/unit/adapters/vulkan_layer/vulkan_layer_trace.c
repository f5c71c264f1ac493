/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_trace.c - which process writes the layer's trace: killed processes, whose rows stay,
 * forks, executed programs, and other processes with the same path.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "tests/support/child.h"
#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

static int count(const char *text, const char *part)
{
    int found = 0;
    for (text = strstr(text, part); text; text = strstr(text + 1, part))
        found++;
    return found;
}

static char *open_traced(fv_fixture *f)
{
    char *path = lf_name_file("QUIRE_LAYER_TRACE");
    lf_open_named(f, "amd-bar");
    return path;
}

UNIT_ALONE(vulkan_layer_trace, rows_are_in_the_file_before_the_device_ends)
{
    fv_fixture f;
    const char *path = open_traced(&f);
    VkDeviceMemory a = lf_allocate(&f, 1000, 0, NULL);
    CHECK_EQ(count(lf_read(path), "alloc,"), 1);
    lf_release(&f, a);
    CHECK_EQ(count(lf_read(path), "free,"), 1);
    fv_fixture_close(&f);
    remove(path);
}

UNIT_ALONE(vulkan_layer_trace, the_variable_of_the_library_does_not_record_the_layer)
{
    fv_fixture f;
    const char *path = lf_name_file("QUIRE_TRACE");
    lf_open_named(&f, "amd-bar");
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    fv_fixture_close(&f);
    CHECK_STR(lf_read(path), "");
    remove(path);
}

UNIT_ALONE(vulkan_layer_trace, a_forked_child_writes_nothing)
{
    fv_fixture f;
    const char *path = open_traced(&f);
    VkDeviceMemory a = lf_allocate(&f, 1000, 0, NULL);
    pid_t made = fork();
    CHECK(made >= 0);
    if (!made) {
        lf_release(&f, a);
        fflush(NULL); /* as exit would do */
        child_end(true);
    }
    CHECK(child_was_well(made));
    lf_release(&f, a);
    fv_fixture_close(&f);
    const char *text = lf_read(path);
    CHECK_EQ(count(text, "op,"), 1);
    CHECK_EQ(count(text, "alloc,"), 1);
    CHECK_EQ(count(text, "free,"), 1);
    remove(path);
}

UNIT_ALONE(vulkan_layer_trace, an_executed_program_does_not_inherit_the_file)
{
    fv_fixture f;
    struct stat wanted, found;
    int seen = 0;
    const char *path = open_traced(&f);
    CHECK(!stat(path, &wanted));
    for (int i = 0; i < 1024; i++)
        if (!fstat(i, &found) && found.st_ino == wanted.st_ino && found.st_dev == wanted.st_dev) {
            CHECK(fcntl(i, F_GETFD) & FD_CLOEXEC);
            seen++;
        }
    CHECK_EQ(seen, 1);
    fv_fixture_close(&f);
    remove(path);
}

UNIT_ALONE(vulkan_layer_trace, a_file_of_another_process_is_left_alone)
{
    fv_fixture f;
    char path[] = "/tmp/quire-layer-XXXXXX", own[64];
    int other = mkstemp(path);
    CHECK(other >= 0);
    CHECK(write(other, "theirs", 6) == 6);
    CHECK(!flock(other, LOCK_EX));
    setenv("QUIRE_LAYER_TRACE", path, 1);
    lf_open_named(&f, "amd-bar");
    lf_release(&f, lf_allocate(&f, 1000, 0, NULL));
    fv_fixture_close(&f);
    CHECK_STR(lf_read(path), "theirs");
    snprintf(own, sizeof own, "%s.%ld", path, (long)getpid());
    CHECK_EQ(count(lf_read(own), "op,"), 1);
    close(other);
    remove(path);
    remove(own);
}

/* A signal handler that calls exit may have interrupted the thread in the middle of a row. */
UNIT_ALONE(vulkan_layer_trace, the_end_of_the_process_does_not_wait_for_ever_for_a_row)
{
    fv_fixture f;
    const char *path = open_traced(&f);
    layer_device *device = layer_device_of(f.device);
    alarm(20);
    CHECK(!pthread_mutex_lock(&device->trace.mutex));
    layer_trace_close(device);
    CHECK(device->trace.is_open);
    CHECK(!pthread_mutex_unlock(&device->trace.mutex));
    alarm(0);
    fv_fixture_close(&f);
    remove(path);
}
