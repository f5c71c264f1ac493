/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * options.c - see options.h.
 */
#include "bench/options.h"

#include <getopt.h>
#include <stdlib.h>

/* The value that getopt_long returns for the first rule, above every character such as '?'. */
enum { FIRST_RULE = 256, HELP = FIRST_RULE + MAX_OPTIONS };

static void take(const usage *u, const option_rule *rule, const char *value)
{
    if (rule->number)
        *rule->number = usage_number(u, value, rule->max);
    else if (rule->text)
        *rule->text = value;
    else if (rule->flag)
        *rule->flag = true;
    else if (!patterns_add(rule->list, value))
        usage_error(u, "too many patterns at", value);
}

void options_parse(const usage *u, const option_rule *rules, size_t count, int argc, char **argv)
{
    struct option options[MAX_OPTIONS + 2] = {{"help", no_argument, NULL, HELP}};
    for (size_t i = 0; i < count && i < MAX_OPTIONS; i++)
        options[i + 1] =
            (struct option){rules[i].name, rules[i].flag ? no_argument : required_argument, NULL,
                            FIRST_RULE + (int)i};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        if (option == HELP) {
            printf("%s", u->text);
            exit(0);
        }
        if (option < FIRST_RULE) { /* getopt_long has printed the error */
            fprintf(stderr, "%s", u->text);
            exit(EXIT_USAGE);
        }
        take(u, &rules[option - FIRST_RULE], optarg);
    }
    if (optind < argc)
        usage_error(u, "unexpected argument", argv[optind]);
}
