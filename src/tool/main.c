/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * main.c - the quire tool: finds the subcommand and runs it.
 */
#include <locale.h>
#include <string.h>

#include "src/tool/options.h"

const command commands[] = {
    {"devices", "[options]", "list heaps, memory kinds, limits, and the kind chosen for each use",
     run_devices, NULL,
     .examples = {{"quire devices", "the memory of the host"},
                  {"quire devices --profile docs/profiles/intel-adl-gt2-anv-23.2.json",
                   "the memory kinds of another machine"}}},
    {"tour", "[options]", "create memories, a buffer and an image, and print their placement",
     run_tour, NULL,
     .examples = {{"quire tour", "where the objects of a small program lie"},
                  {"quire tour --profile docs/profiles/raspberrypi-v3dv-mesa-25.0.json --json",
                   "the same on a device with one memory kind, for a program"}}},
    {"record", "[options] PROGRAM [ARGUMENTS]",
     "run a program and record what it allocates with quire or Vulkan", run_record, NULL,
     .runs_program = true,
     .examples = {{"quire record --output tour.trace quire tour --json",
                   "the allocations of another command, which uses the library"},
                  {"quire record --no-layer quire replay docs/traces/dawn.csv",
                   "those of a replay, in quire.trace, without the Vulkan layer"}}},
    {"top", "FILE [options]", "show what a process allocates while it records", run_top, NULL,
     .examples = {{"quire top tour.trace --once",
                   "what lives at the end of a recording (of quire record, for example)"},
                  {"quire top tour.trace --once --top 0 --json",
                   "the same for a program, with all names"}}},
    {"replay", "TRACE [options]", "replay an allocation trace on a memory and report its cost",
     run_replay, NULL,
     .examples = {{"quire replay docs/traces/ncnn-resnet50.csv",
                   "peaks, pages, backend calls and latencies of a trace"},
                  {"quire replay docs/traces/llama.csv --preset vma",
                   "a trace on pages with the sizes of another allocator"},
                  {"quire replay docs/traces/transformer-training.csv --html report.html",
                   "the course of memory over the trace, for a browser"}}},
    {"compare", "A B [options]", "put two traces side by side, with the cost of each on a memory",
     run_compare, NULL,
     .examples = {{"quire compare docs/traces/ncnn-resnet50.csv docs/traces/ncnn-mobilenet_v2.csv",
                   "what two networks allocate, and what lives at their peaks"},
                  {"quire compare docs/traces/llama.csv docs/traces/llm-serving.csv --json",
                   "the same figures for a program"},
                  {"quire compare docs/traces/dawn.csv docs/traces/llama.csv --fail-above 5",
                   "a check that fails if the peak has grown by more than 5 %"}}},
    {"map", "TRACE [options]", "draw the pages of a memory at one event of a trace", run_map, NULL,
     .examples = {{"quire map docs/traces/dawn.csv", "the pages at the peak of the trace"},
                  {"quire map docs/traces/dawn.csv --at 100 --page-size 4M --svg pages.svg",
                   "pages of 4 MiB after 100 events, as a picture"}}},
    {"page", "FILE [options]", "show the pages of a running program, from the JSON that it wrote",
     run_page, NULL,
     .examples = {{"quire page docs/examples/device_dump.json",
                   "what each memory of a device holds"},
                  {"quire page docs/examples/device_dump.json --html page.html",
                   "its pages, ranges and names, for a browser"}}},
    {"export", "TRACE [options]",
     "write a trace as CSV, or its replay for another program's viewer", run_export, NULL,
     .examples = {{"quire export docs/traces/dawn.csv --format memory_viz --output dawn.pickle",
                   "a snapshot for pytorch.org/memory_viz"},
                  {"quire export docs/traces/dawn.csv --format vma --output dawn.json",
                   "the pages at the peak for GpuMemDumpVis"},
                  {"quire export docs/traces/dawn.csv --format perfetto --output dawn.pftrace",
                   "the course of the whole trace for ui.perfetto.dev"}}},
    {"plan", "FILE [options]",
     "give ranges with known lifetimes offsets in as few bytes as possible", run_plan, NULL,
     .examples = {{"quire plan docs/traces/ncnn-yolov4-tiny.csv",
                   "the least memory that the tensors of a network need"},
                  {"quire plan docs/traces/ncnn-yolov4-tiny.csv --csv offsets.csv",
                   "the offset of each tensor, for a program"},
                  {"quire plan docs/traces/onnxruntime-resnet50.csv --limit 0.5 --svg -",
                   "half a second of search, and its result as a picture"}}},
    {"import", "FILE [options]", "write a trace from a file that another program wrote", run_import,
     NULL,
     .examples = {{"quire import offsets.csv --output ranges.csv",
                   "a trace of ranges with known lifetimes (the file of quire plan --csv)"},
                  {"quire import offsets.csv --format minimalloc",
                   "the same on standard output, with the format named"}}},
    {"tune", "TRACE [TRACE ...] [options]",
     "replay traces with many memory options and recommend one set", run_tune, NULL,
     .examples = {{"quire tune docs/traces/ncnn-resnet50.csv",
                   "the best options for a trace, as C and as flags of replay"},
                  {"quire tune docs/traces/ncnn-resnet50.csv docs/traces/ncnn-mobilenet_v2.csv",
                   "the best options for two traces together"},
                  {"quire tune docs/traces/ncnn-resnet50.csv --fit first --all",
                   "every candidate with one fit"}}},
    {"bench", "WORKLOAD [options]", "time a workload of allocations and frees", run_bench,
     list_workloads, .print_words = print_workload_names,
     .examples = {{"quire bench m_a4k", "one thread on a bare space"},
                  {"quire bench m_dnn --threads 2 --repeats 3",
                   "two threads that share one memory"},
                  {"quire bench ramp-pow2", "how full a space is when the first request fails"}}},
    {"copy", "[options]", "measure copies between all kinds of memory, and name their paths",
     run_copy, NULL,
     .examples = {{"quire copy --size 1M", "the speed of copies of 1 MiB on the host"},
                  {"quire copy --profile docs/profiles/raspberrypi-v3dv-mesa-25.0.json --json",
                   "the paths of a device that a profile describes"}}},
    {"completion", "SHELL", "print the script that completes command lines in bash or zsh",
     run_completion, NULL, .print_words = print_shell_names,
     .examples = {{"quire completion bash", "~/.bashrc: eval \"$(quire completion bash)\""},
                  {"quire completion zsh",
                   "~/.zshrc, after compinit: eval \"$(quire completion zsh)\""}}},
};

const size_t command_count = sizeof commands / sizeof *commands;

static void print_help(FILE *out)
{
    fprintf(out, "quire %s - pages, placement and insight for device memory\n\n", quire_version());
    fprintf(out, "usage: quire COMMAND [arguments]\n\n");
    for (size_t i = 0; i < command_count; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\nquire help COMMAND lists the options of a command.\n"
                 "Sizes accept the binary suffixes K, M, G and T.\n"
                 "Exit status: 0 success, 1 failure, 2 bad usage.\n");
}

/* A full disk or a closed pipe shows up here at the latest, because standard output is buffered. */
static int end_output(int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    fprintf(stderr, "quire: standard output cannot be written\n");
    return EXIT_FAILED;
}

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    print_problem("quire: unknown command '%s'; quire --help lists the commands", name);
    return NULL;
}

/* quire help COMMAND is quire COMMAND --help. */
static int run_help(int argc, char **argv)
{
    if (argc > 3) {
        print_problem("quire: unexpected argument '%s'; quire help takes one command", argv[3]);
        return EXIT_USAGE;
    }
    const command *found = find_command(argv[2]);
    char help[] = "--help";
    char *arguments[] = {argv[2], help, NULL};
    return found ? end_output(found->run(found, 2, arguments)) : EXIT_USAGE;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* for is_utf8_output */
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "help") && argc > 2)
        return run_help(argc, argv);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(stdout);
        return end_output(EXIT_OK);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("quire %s\n", quire_version());
        return end_output(EXIT_OK);
    }
    const command *found = find_command(argv[1]);
    return found ? end_output(found->run(found, argc - 1, argv + 1)) : EXIT_USAGE;
}
