# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests the points that mutate.py finds in a source, and the list of equivalent mutants.

usage: points_test.py SOURCE_ROOT
"""

import pathlib
import sys

sys.dont_write_bytecode = True

import points  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "static"))
from tap import Tap  # noqa: E402

SOURCE = '''\
/* a < b, if (x) return 1; */
#define MORE(a) ((a) + 1 < 2)
static const int table[] = {1, 2};

static bool small(int a, const struct thing *b)
{
    static_assert(1 < 2, "1 < 2");
    int sum = -1; // a + b
    if (a <= 3 && !b)
        return false;
    sum = a + b->count;
    for (int i = 0; i < a; i++)
        call(b,
             '+');
    if (sum >> 2)
        return qi_fail("%u + 1", sum + 1);
    return true;
}
'''

# line, operator, old text, new text
EXPECTED = [
    (8, "constant", "1", "0"), (8, "constant", "1", "2"),
    (9, "comparison", "<=", "<"), (9, "comparison", "<=", ">"), (9, "and or", "&&", "||"),
    (9, "constant", "3", "2"), (9, "constant", "3", "4"),
    (9, "negated condition", "a <= 3 && !b", "!(a <= 3 && !b)"),
    (10, "dropped return", "return false", ""), (10, "swapped result", "false", "true"),
    (11, "deleted statement", "sum = a + b->count", ""), (11, "plus minus", "+", "-"),
    (12, "constant", "0", "1"), (12, "comparison", "<", "<="), (12, "comparison", "<", ">="),
    (12, "plus minus", "++", "--"),
    (13, "deleted statement", "call(b,\n             '+')", "\n"),
    (15, "constant", "2", "1"), (15, "constant", "2", "3"), (15, "negated condition", "sum >> 2", "!(sum >> 2)"),
    (16, "dropped return", 'return qi_fail("%u + 1", sum + 1)', ""),
    (17, "swapped result", "true", "false"),
]


def check_points(tap):
    found = {(points.line_of(SOURCE, p), p.operator, SOURCE[p.begin:p.end], p.new)
             for p in points.points_of("small.c", SOURCE)}
    expected = set(EXPECTED)
    tap.case("the points of a small source", [f"missing: {e}" for e in sorted(expected - found)] +
             [f"not expected: {f}" for f in sorted(found - expected)])
    tap.case("a mutant has as many lines as its source",
             [str(p) for p in points.points_of("small.c", SOURCE)
              if points.apply(SOURCE, p).count("\n") != SOURCE.count("\n")])
    point = next(p for p in points.points_of("small.c", SOURCE) if p.new == "\n")
    lines = points.changed_lines(SOURCE, point)
    tap.case("the lines of a mutant", [] if lines == ("call(b, '+');", ";") else [lines])
    point = next(p for p in points.points_of("small.c", SOURCE) if p.operator == "dropped return" and p.new == "")
    source = SOURCE.replace("return false;", "return  false; /* a\n b */ // c")
    lines = points.changed_lines(source, point._replace(end=point.end + 1))
    tap.case("the lines of a mutant ignore comments and whitespace", [] if lines == ("return false;", ";") else [lines])
    line = 'call("/* a */ // b", c);'
    tap.case("a string is not a comment", [] if points.without_comments(line) == line else [line])


def check_equivalents(tap, root):
    listed = points.read_equivalents(HERE / "equivalent.txt")
    possible, problems = set(), []
    for file in {key[0] for key in listed}:
        if not (root / file).exists():
            problems.append(f"no such file: {file}")
            continue
        text = (root / file).read_text()
        possible |= {(file, p.operator, *points.changed_lines(text, p)) for p in points.points_of(file, text)}
    problems += [f"not a mutant of the current sources: {key}" for key in listed if key not in possible]
    problems += [f"no reason: {key}" for key, reason in listed.items() if not reason.strip()]
    tap.case("equivalent.txt lists mutants of the current sources, with reasons", problems)


def main():
    tap = Tap()
    check_points(tap)
    check_equivalents(tap, pathlib.Path(sys.argv[1]).resolve())
    tap.end()


main()
