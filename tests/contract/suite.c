/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * suite.c - the test of the contract itself: some scenario fails with each broken backend
 * (broken.h), and none fails with a correct one. Each run has its own process.
 *
 *     contract-suite              each broken backend fails some scenario
 *     contract-suite --scenarios  each scenario fails with some broken backend
 *     contract-suite --matrix     prints for each scenario with which, by number
 *     contract-suite NUMBER       runs one in this process and shows its output; counted from 0
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/checked.h"
#include "tests/contract/broken.h"
#include "tests/support/valgrind.h"

/* ---- one run ------------------------------------------------------------------------------ */

/* The result of one run of the suite. */
typedef struct verdict {
    FILE *output;
    int status;         /* exit status of its process */
    char scenario[256]; /* the scenario that failed, or "" */
} verdict;

static const char SETTING_OUT[] = "a device is opened and ended"; /* before the first scenario */

/* Leaks of a failed run do not matter, not to the leak sanitizer either. */
static void leave_at_once(void)
{
    fflush(stdout);
    _exit(1);
}

static _Noreturn void run_child(FILE *output, broken_thing thing, const contract_scenario *only)
{
    atexit(leave_at_once);
    dup2(fileno(output), STDOUT_FILENO);
    dup2(fileno(output), STDERR_FILENO);
    contract_run(broken_subject(thing), only);
    fflush(stdout);
    _exit(0);
}

static void find_failure(verdict *v)
{
    char line[512];
    rewind(v->output);
    while (!*v->scenario && fgets(line, sizeof line, v->output)) {
        const char *begin = strstr(line, "broken: ");
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, "not ok", 6))
            snprintf(v->scenario, sizeof v->scenario, "%s",
                     begin ? begin + strlen("broken: ") : SETTING_OUT);
    }
}

/* Runs all scenarios, or one, in a new process. */
static verdict run(broken_thing thing, const contract_scenario *only)
{
    verdict v = {.output = tmpfile()};
    CHECK(v.output);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        run_child(v.output, thing, only);
    CHECK_EQ(waitpid(child, &v.status, 0), child);
    find_failure(&v);
    return v;
}

/* ---- each broken backend ------------------------------------------------------------------ */

static broken_thing current;
static char title[512];

static void print_output(FILE *output)
{
    char line[512];
    rewind(output);
    while (fgets(line, sizeof line, output))
        if (strncmp(line, "ok", 2))
            fprintf(stderr, "# %s", line);
}

static void suite_knows(void)
{
    verdict v = run(current, NULL);
    bool is_sound = current < BROKEN_FIRST, has_failed = *v.scenario;
    if (!WIFEXITED(v.status) || is_sound == has_failed)
        print_output(v.output);
    fclose(v.output);
    if (!WIFEXITED(v.status))
        check_failed(__FILE__, __LINE__, "the suite ended by signal %d", WTERMSIG(v.status));
    const char *outcome = has_failed ? v.scenario : "every scenario passes";
    if (is_sound == has_failed)
        check_failed(__FILE__, __LINE__, "%s", outcome);
    size_t length = strlen(title);
    snprintf(title + length, sizeof title - length, ": %s", outcome);
}

static void test_backends(void)
{
    for (uint32_t i = 0; i < BROKEN_COUNT; i++) {
        current = (broken_thing)i;
        snprintf(title, sizeof title, "%s", broken_sentence(current));
        plain_case(title, suite_knows);
    }
}

/* ---- each scenario ------------------------------------------------------------------------ */

static const contract_scenario *tested;

static bool fails_with(const contract_scenario *scenario, uint32_t thing)
{
    verdict v = run((broken_thing)thing, scenario);
    fclose(v.output);
    return *v.scenario && strcmp(v.scenario, SETTING_OUT) != 0;
}

static void scenario_can_fail(void)
{
    uint32_t thing = BROKEN_COUNT;
    while (thing-- > BROKEN_FIRST)
        if (fails_with(tested, thing))
            break;
    if (thing < BROKEN_FIRST)
        check_failed(__FILE__, __LINE__, "no broken backend fails this scenario");
    size_t length = strlen(title);
    snprintf(title + length, sizeof title - length, ", not with: %s",
             broken_sentence((broken_thing)thing));
}

static void test_scenarios(void)
{
    for (uint32_t i = 0; (tested = contract_scenario_at(i)); i++) {
        if (tested->by_core || (tested->is_exact && QI_IS_CHECKED))
            continue;
        snprintf(title, sizeof title, "%s", tested->name);
        plain_case(title, scenario_can_fail);
    }
}

static void print_matrix(void)
{
    const contract_scenario *scenario;
    for (uint32_t i = 0; (scenario = contract_scenario_at(i)); i++) {
        printf("%s:", scenario->name);
        for (uint32_t thing = BROKEN_FIRST; thing < BROKEN_COUNT; thing++)
            if (fails_with(scenario, thing))
                printf(" %" PRIu32, thing);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (under_valgrind()) {
        plain_skip("broken backends", "valgrind finds what is broken on purpose");
        return plain_end();
    }
    if (!strcmp(what, "--matrix")) {
        print_matrix();
        return 0;
    }
    if (isdigit((unsigned char)*what)) {
        unsigned long number = strtoul(what, NULL, 10);
        CHECK(number < BROKEN_COUNT);
        contract_run(broken_subject((broken_thing)number), NULL);
    } else if (!strcmp(what, "--scenarios")) {
        test_scenarios();
    } else {
        test_backends();
    }
    return plain_end();
}
