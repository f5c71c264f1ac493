# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""quire completion: what bash and zsh offer for a command line is what --help names.

usage: completion.py PATH_TO_QUIRE SOURCE_ROOT
"""

import os
import pathlib
import re
import shutil
import subprocess

from tool_run import COMMANDS, QUIRE, ROOT, Skipped, here, prints, refused, run, run_all, write

# the names of values in the help that are neither files nor words
FREE = {"D", "N", "PERCENT", "SECONDS", "SIZE", "SIZES", "SIZE|PERCENT%"}
MEMBER_WORDS = {"by_size", "always", "never", "last", "largest", "reserved"}
WORDS = {"host", "vulkan", "cuda", "plugin", "segregated", "first", "buddy", "linear", "vma", "rmm", "pytorch",
         "peak", "end", "memory_viz", "kineto", "minimalloc", "perfetto", "csv"} | MEMBER_WORDS
# Completes each line of standard input, as readline calls the function. Words are separated by tabs.
BASH = """eval "$SCRIPT"
while IFS= read -r line; do
    mapfile -t COMP_WORDS <<<"${line//$'\\t'/$'\\n'}"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _quire quire
    printf '%s\\t' "${COMPREPLY[@]}"
    echo
done
"""
# Shows what the functions of zsh's completion system get for the words in $LINE.
ZSH = """_arguments() { print -rl -- "$@"; }
_describe() { print -rl -- ${(P)4} }
eval "$SCRIPT"
words=("${(@s:|:)LINE}")
CURRENT=$#words
_quire
"""


def options_of(command):
    """(name, name of the value or "", help) of each option that the help of a command lists."""
    text = run(command, "--help").out.split("\nExamples")[0]
    rows = re.findall(r"^  --([\w-]+)(?: ([A-Z|%]+))? +(\S.*(?:\n {8,}\S.*)*)", text, re.M)
    return [(name, value, " ".join(words.split())) for name, value, words in rows]


def script(shell):
    done = run("completion", shell)
    if done.code or done.err:
        raise ValueError(f"{done.what}: exit {done.code}, {done.err}")
    return done.out


def complete(*lines):
    """What bash offers for each line, which is a list of words; the last one is to be completed."""
    text = "".join("\t".join(["quire", *line]) + "\n" for line in lines)
    done = subprocess.run(["bash", "--norc", "-c", BASH], input=text, text=True, capture_output=True, cwd=here(),
                          env={**os.environ, "SCRIPT": script("bash")})
    offers = [sorted(filter(None, line.split("\t"))) for line in done.stdout.splitlines()]
    if done.returncode or done.stderr or len(offers) != len(lines):
        raise ValueError(f"bash: exit {done.returncode}, {len(offers)} of {len(lines)} lines: {done.stderr}")
    return offers


def differ(lines):
    """Lines with their expected offers that bash does not make."""
    for (line, expected), offered in zip(lines, complete(*(line for line, _ in lines))):
        if offered != sorted(expected):
            yield f"quire {line}: {offered}, not {sorted(expected)}"


def words_in(text):
    return list(dict.fromkeys(word for word in re.findall(r"\w+", text) if word in WORDS))


def case_bash_commands():
    """bash completes commands, and those after help."""
    yield from differ([([""], [*COMMANDS, "help", "--help", "--version"]), (["t"], ["top", "tour", "tune"]),
                       (["--v"], ["--version"]), (["x"], []), (["help", "re"], ["record", "replay"]),
                       (["help", ""], COMMANDS), (["help", "map", ""], []), (["frob", ""], [])])


def case_bash_options():
    """bash completes every option that a command's help lists, and no other."""
    yield from differ([([command, "--"], [f"--{name}" for name, *_ in options_of(command)] + ["--help"])
                       for command in COMMANDS])
    yield from differ([(["replay", "a.csv", "--json", "--sv"], ["--svg"]), (["plan", "--c"], ["--capacity", "--check",
                                                                                             "--csv"])])


def case_bash_values():
    """bash completes the words that the help of an option names, or files, or nothing."""
    write("a b.csv", "")
    (here() / "folder").mkdir()
    lines, words = [], 0
    for command in COMMANDS:
        for name, value, text in options_of(command):
            if not value:
                continue
            named = [] if value in FREE else ["a b.csv", "folder"] if value == "FILE" else words_in(text)
            words += len(named)
            if value not in FREE and not named:
                yield f"{command} --{name} {value}: the help names no word that this test knows"
            lines += [([command, f"--{name}", ""], named), ([command, f"--{name}", "="], named),
                      ([command, f"--{name}", "=", named[0][:2] if named else "x"],
                       [n for n in named if n.startswith(named[0][:2])])]
    if words < 60:
        yield f"{words} values in all helps"
    yield from differ(lines)


def case_bash_arguments():
    """bash completes a trace with files, and a workload with names that bench runs."""
    write("a b.csv", "")
    write("b.csv", "")
    yield from differ([([command, ""], ["a b.csv", "b.csv"]) for command in ("replay", "map", "plan", "top", "tune")])
    yield from differ([(["record", "b.c"], ["b.csv"])])
    [programs] = complete(["record", "--no-layer", "bas"])
    if "bash" not in programs or len(set(programs)) != len(programs):
        yield f"record: {programs}"
    yield from differ([(["replay", "--json", "b"], ["b.csv"]), (["completion", ""], ["bash", "zsh"]),
                       (["devices", ""], [f"--{name}" for name, *_ in options_of("devices")] + ["--help"])])
    [names] = complete(["bench", ""])
    text = run("bench", "--help").out.split("Workloads")[1]
    listed = " ".join(re.findall(r"^  (.{22}) ", text, re.M)).split()
    if sorted(name for name in listed if not name.endswith("...")) != names:
        yield f"bench: {names}, its help {listed}"


def case_words():
    """The tool takes every word that is offered for a member or a preset, and says which shells there are."""
    trace = ROOT / "docs/traces/llama.csv"
    for name, value, text in options_of("replay"):
        for word in words_in(text) if value == "WORD" else ():
            more = {"linear": ["--page-size", "64M"],
                    "reserved": ["--pages-growth-percent", "10", "--pages-first-page-size", "1M"]}.get(word, [])
            yield from prints(["replay", trace, f"--{name}", word, *more], "peak")
    yield from refused(["replay", trace, "--preset", "host"], 2, "--preset takes vma, rmm or pytorch")
    done = run("completion", "fish")
    if done.code != 2 or "unknown shell 'fish'; the shells are bash and zsh" not in done.err or done.out:
        yield f"{done.what}: exit {done.code}, {done.err}"
    done = run("completion")
    if done.code != 2 or "missing argument: quire completion SHELL" not in done.err or done.out:
        yield f"{done.what}: exit {done.code}, {done.err}"


def case_bash_installed_file():
    """The installed file of bash takes the script from the tool."""
    path = {**os.environ, "PATH": f"{pathlib.Path(QUIRE).parent}:{os.environ['PATH']}"}
    command = ["bash", "--norc", "-c", 'source "$0" && complete -p quire', ROOT / "src/tool/completion/quire.bash"]
    done = subprocess.run(command, text=True, capture_output=True, env=path)
    if done.stdout != "complete -F _quire quire\n" or done.stderr:
        yield f"{done.stdout!r} {done.stderr!r}"


def case_zsh():
    """zsh has the same commands, options and values."""
    shell = shutil.which("zsh")
    if not shell:
        raise Skipped("zsh is not installed")

    def specs(*line):
        done = subprocess.run([shell, "-f", "-c", ZSH], text=True, capture_output=True, cwd=here(),
                              env={**os.environ, "SCRIPT": script("zsh"), "LINE": "|".join(["quire", *line])})
        if done.stderr:
            raise ValueError(done.stderr)
        return done.stdout.splitlines()

    for line in ([""], ["help", ""]):
        if [row.split(":")[0] for row in specs(*line)] != [*COMMANDS, "help"]:
            yield f"quire {line}: {specs(*line)}"
    for command in COMMANDS:
        rows = "\n".join(specs(command, "")).replace("\\[", "(").replace("\\]", ")")
        found = re.findall(r"^--([\w-]+)=?\[([^\]]*)\](?::([^:]*):(.*))?$", rows, re.M)
        expected = [(name, text, value, "_files" if value == "FILE" else " " if value in FREE else
                     f"( {' '.join(words_in(text))})") if value else (name, text, "", "")
                    for name, value, text in options_of(command)]
        if found != expected:
            yield f"{command}: {set(found) ^ set(expected)}"
        if ":TRACE:_files" not in rows and command in ("replay", "map", "tune"):
            yield f"{command}: no files: {rows[-200:]}"
    done = subprocess.run([shell, "-n", ROOT / "src/tool/completion/_quire"], text=True, capture_output=True)
    if done.returncode or done.stderr:
        yield f"_quire: {done.stderr}"


run_all(globals())
