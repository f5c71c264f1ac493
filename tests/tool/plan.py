# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command plan: plans of CSV files and traces, their check, and what is refused.

usage: plan.py PATH_TO_QUIRE SOURCE_ROOT
"""

import csv
import pathlib
import subprocess
import sys
from xml.etree import ElementTree

from html_tables import Plan
from tool_run import (
    BOOL, DATA, MAYBE, MIB, NUMBER, REPLAY, ROOT, SMALL, Skipped, TEXT, execute, fails, here, prints, result, run, run_all,
    skip_without_data, succeeds, usage, write,
)

PLAN = {"file": TEXT, "ranges": NUMBER, "peak_bytes": NUMBER, "lower_bound_bytes": NUMBER, "proven_optimal": BOOL,
        "steps": NUMBER, "wall_ns": NUMBER, "arenas": [{"capacity_bytes": MAYBE, "peak_bytes": NUMBER}]}
HEADER = "id,lower,upper,size\n"
TRACE = "op,id,size,alignment,time_ns,stream,label\n"
THREE = HEADER + "input,0,3,4096\nweights,1,4,1024\noutput,3,5,4096\n"


def plan(*args):
    return result("plan", *args, shape=PLAN)


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def live_overlaps(items):
    """Pairs of rows that live at one time and share bytes, by definition."""
    numbers = [[int(item[key]) for key in ("lower", "upper", "size", "offset")] for item in items]
    for i, (lower, upper, size, offset) in enumerate(numbers):
        for j, (low, up, z, o) in enumerate(numbers[:i]):
            if (lower < up and low < upper and offset < o + z and o < offset + size
                    and items[i].get("arena") == items[j].get("arena")):
                yield f"{items[j]} and {items[i]} share bytes"


def case_plan():
    path = write("three.csv", THREE)
    value = plan(path)
    if [value[key] for key in ("ranges", "peak_bytes", "lower_bound_bytes", "proven_optimal")] != [3, 5120, 5120, True]:
        yield f"{value}"
    yield from prints(["plan", path], "three.csv: 3 ranges", r"peak +5120 bytes \(5 KiB\)", "no plan has a lower peak")
    yield from prints(["plan", path, "--csv", "-"], r"id,lower,upper,size,offset\ninput,0,3,4096,\d+\n")
    done = run("plan", "-", stdin=THREE.encode())
    yield from succeeds(done)


def case_plan_file_is_checked():
    path = write("three.csv", THREE)
    yield from succeeds(run("plan", path, "--csv", "out.csv"))
    out = here() / "out.csv"
    yield from live_overlaps(rows(out))
    yield from prints(["plan", "--check", out], "peak +5120 bytes")
    value = plan("--check", out)
    if value["peak_bytes"] != 5120 or not value["proven_optimal"]:
        yield f"{value}"
    bad = write("bad.csv", "id,lower,upper,size,offset\na,0,3,8,0\nb,2,4,8,7\n")
    yield from fails(run("plan", "--check", bad), 1, r"items 0 \('a'\) and 1 \('b'\) of the plan share bytes")
    yield from fails(run("plan", bad), 1, "share bytes")  # the offsets are fixed ones
    yield from fails(run("plan", "--check", path), 1, r"item 0 \('input'\) has no offset")
    fixed = write("fixed.csv", "id,lower,upper,size,offset\na,0,3,8,\nb,2,4,8,4\n")
    yield from prints(["plan", fixed, "--csv", "-"], "a,0,3,8,12", "b,2,4,8,4")


def case_plan_of_a_trace():
    value = plan(SMALL, "--csv", "out.csv")
    yield from live_overlaps(rows(here() / "out.csv"))
    if value["ranges"] != 254 or not value["proven_optimal"]:
        yield f"{value}"
    trace = write("t.csv", "op,id,size,alignment,time_ns,stream,label\nalloc,7,10,4,0,0,x\nfree,7,,,1,0,\n"
                           "alloc,7,20,64,2,0,y\n")
    if plan(trace)["peak_bytes"] != 20:
        yield "a range after another one takes its bytes"
    yield from fails(run("plan", write("bad.csv", "op,id,size\nalloc,x\n")), 1, r"bad\.csv:")


def case_plan_beside_a_replay():
    value = result("replay", SMALL, "--plan", shape={**REPLAY, "plan": {
        "peak_bytes": NUMBER, "lower_bound_bytes": NUMBER, "proven_optimal": BOOL}})
    if value["plan"]["peak_bytes"] != plan(SMALL)["peak_bytes"]:
        yield f"{value['plan']}"
    yield from prints(["replay", SMALL, "--plan"], r"a plan needs +9.19 MiB, 1.0000 times peak requested; no plan")
    yield from succeeds(run("replay", write("empty.csv", TRACE), "--plan"))


def case_plan_as_a_picture():
    """Each item is one rectangle with its name; the page loads nothing"""
    path = write("three.csv", HEADER + "a<b/c,0,3,4096\nweights,1,4,1024\n,3,5,4096\n")
    yield from succeeds(run("plan", path, "--svg", "plan.svg", "--html", "plan.html"))
    svg = ElementTree.parse(here() / "plan.svg")
    titles = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}title")]
    for text in ("a<b/c: 4 KiB at offset ", "weights: 1 KiB", "item 2: 4 KiB"):
        if sum(t.startswith(text) for t in titles) != 1:
            yield f"{text}: {titles}"
    page = (here() / "plan.html").read_text()
    if "http://" in page.replace("http://www.w3.org/2000/svg", "") or "a<b" in page:
        yield page[:300]
    for text in ("A plan of 3 items in 5 KiB. No plan has a lower peak", "<td>peak</td><td>5120</td><td>5 KiB</td>",
                 "a&lt;b/c: 4 KiB at offset", '<h2>Arenas and names<span class="moments"> at any time<',
                 '<label class="moments">At time <input',
                 "The line shows"):
        if text not in page:
            yield f"no {text!r} in {page}"
    yield from prints(["plan", path, "--svg", "-"], "<svg ", "</svg>")
    arenas = write("arenas.csv", "id,lower,upper,size,arena\na,0,9,60,1\nb,0,9,70,2\n")
    yield from prints(["plan", arenas, "--capacity", "100,0", "--svg", "-"], "arena 1", "arena 2", "b: 70 B at offset 0")
    yield from prints(["plan", write("none.csv", HEADER), "--html", "-"], "A plan of 0 items", "</html>")
    many = write("many.csv", HEADER + "".join(f"{i},{i},{i + 2},64\n" for i in range(21000)))
    yield from prints(["plan", many, "--html", "-", "--steps", "1"], "the 5000 items of the largest area")
    if execute("plan", many, "--svg", "-", "--steps", "1").stdout.count(b"<rect x=") != 20000:
        yield "another number of items is drawn"
    same = write("x.svg", "")
    yield from usage("plan", path, "--svg", same, "--html", same, pattern="different files")
    yield from usage("plan", path, "--svg", "-", "--html", "-", pattern="one of --json")


def by_csv(path):
    """What Plan.rows has, from the CSV of the plan."""
    return sorted((row["id"], int(row["lower"]), int(row["upper"]), row.get("arena", "1"), int(row["offset"]),
                   int(row["size"])) for row in rows(path))


def busiest(items):
    """The first time with the most bytes in use."""
    loads = {time: sum(size for _, lower, upper, _, _, size in items if lower <= time < upper)
             for _, time, *_ in items}
    return min(time for time, load in loads.items() if load == max(loads.values()))


def case_plan_page_of_times():
    """The tables of the page are the CSV of the plan, whatever the times; a dense plan needs few points"""
    dense = "".join(f"t{i},{i},{i + 2},{64 + i % 7}\n" for i in range(100))
    base = 2**64 - 2**40
    sparse = "".join(f"s{i % 9},{base + i ** 3},{base + i ** 3 + 1 + i % 5},{1 + i * 37 % 101}\n" for i in range(200))
    for name, text, points in (("dense", dense, [(0, 0), (101, 101)]), ("sparse", sparse, None),
                               ("one", "x,5,6,8\n", [(0, 0), (1, 1)])):
        page = Plan(write(f"{name}.csv", HEADER + text))
        items = by_csv(here() / "course.csv")
        if page.rows() != items:
            yield f"{name}: the page has {page.rows()}, and the CSV {items}"
        if points and page.times != points:
            yield f"{name}: the times are {page.times}"
        if page.time(int(page.data["peak"])) != busiest(items) or page.time(0) != min(item[1] for item in items):
            yield f"{name}: {page.data}, not {busiest(items)}"
        if [row[:1] for row in page.pages] != [(1,)] or page.changes != [(0, 0, max(i[4] + i[5] for i in items))]:
            yield f"{name}: {page.pages} {page.changes}"
    none = Plan(write("none.csv", HEADER))
    if none.ranges or none.pages or none.times != [(0, 0)] or none.data["events"] != "0":
        yield f"no items: {none.data} {none.times}"


def case_plan_page_of_arenas():
    """Each arena that has bytes is a page; the page says that there are aliases"""
    text = "id,lower,upper,size,alignment,arena,alias\na,0,9,600,,3,\nb,0,9,70,,1,\nc,2,5,50,,3,1\nd,5,9,60,,3,1\n"
    page = Plan(write("arenas.csv", text), "--capacity", "100,100,0")
    items = by_csv(here() / "course.csv")
    if page.rows() != items or [number for number, *_ in page.pages] != [1, 3]:
        yield f"{page.rows()} {page.pages}, not {items}"
    if page.changes != [(0, 0, 70), (0, 1, 660)]:
        yield f"{page.changes}"
    for text in ("<td>arena 1</td><td>70</td><td>70 B</td><td>of 100 B</td>", "<td>arena 2</td><td>0</td>",
                 "<td>arena 3</td><td>660</td><td>660 B</td><td></td>", "Aliases are the same bytes"):
        if text not in page.text:
            yield f"no {text!r}"
    if "The line shows" in page.text:
        yield "several arenas have no line"
    many = write("many.csv", "id,lower,upper,size,arena\n" + "".join(f"{i},0,1,8,{i + 1}\n" for i in range(40)))
    yield from prints(["plan", many, "--capacity", ",".join(["0"] * 40), "--html", "-"], "the first 32 arenas")


def case_plan_page_of_a_check():
    """The page of a checked file has its offsets, also if they are no good plan"""
    path = write("placed.csv", "id,lower,upper,size,offset\na,0,4,10,100\nb,2,6,20,0\n")
    yield from succeeds(run("plan", "--check", path, "--html", "checked.html"))
    page = (here() / "checked.html").read_text()
    for text in ('<pre hidden id="data-ranges">\n0 2 0 100 10 10 0\n1 2 0 0 20 20 1\n</pre>',
                 '<pre hidden id="data-changes">\n0 0 110\n</pre>', "The peak is 3.66667 times the lower bound"):
        if text not in page:
            yield f"no {text!r}"


def case_plan_page_of_a_trace():
    """The moments of a trace are its events, with times and frames; a range that is never freed lives to the end"""
    trace = write("t.csv", TRACE + "alloc,7,10,4,100,0,x\nframe,,,,150,,\nfree,7,,,200,0,\nalloc,7,20,64,300,0,y\n")
    page = Plan(trace)
    if page.ranges != [(1, 3, 0, 0, 10, 10, "x"), (4, None, 0, 0, 20, 20, "y")]:
        yield f"{page.ranges}"
    if page.data["events"] != "4" or page.data["peak"] != "4" or page.frames != [(2,)]:
        yield f"{page.data} {page.frames}"
    if [moment for moment, _ in page.times] != [1, 2, 3, 4] or 'Arenas and names<span class="moments"> at any event' not in page.text:
        yield f"{page.times}"
    page = Plan(SMALL)
    events = int(page.data["events"])
    found = sorted((begin - 1, (events + 1 if end is None else end) - 1, offset, size)
                   for begin, end, _, offset, size, *_ in page.ranges)
    if len(found) != 254 or found != sorted((*item[1:3], *item[4:]) for item in by_csv(here() / "course.csv")):
        yield "the page of a trace has other ranges than its CSV"


def case_plan_in_arenas():
    path = write("arenas.csv", "id,lower,upper,size,alignment,arena,alias\na,0,9,600,,,\nb,0,9,600,,,\nc,0,9,100,8,2,\n"
                               "d,0,4,50,,,1\ne,4,9,60,,,1\n")
    value = plan(path, "--capacity", "1K,700", "--csv", "out.csv")
    items = rows(here() / "out.csv")
    yield from live_overlaps(items[:4])
    if items[3]["offset"] != items[4]["offset"] or items[3]["arena"] != items[4]["arena"]:
        yield f"aliases: {items}"
    if items[2]["arena"] != "2" or [a["capacity_bytes"] for a in value["arenas"]] != [1024, 700]:
        yield f"{items} {value}"
    yield from prints(["plan", path, "--capacity", "1K,700"], r"arena 1 +\d+ bytes of 1024", r"arena 2 +\d+ bytes of 700")
    value = plan(path, "--capacity", "1K,0")
    if value["arenas"][1]["capacity_bytes"] is not None:
        yield f"{value}"
    yield from prints(["plan", "--check", "out.csv", "--capacity", "1K,700"], "arena 2")
    yield from fails(run("plan", path, "--capacity", "512,599"), 1,
                     r"item 0 \('a'\) of the plan has 600 B: the largest arena that it may use has 599 B")
    yield from fails(run("plan", path), 1, "names arena 2 of 1")


def case_plan_refuses():
    path = write("three.csv", THREE)
    yield from fails(run("plan", path, "--capacity", "5119"), 1,
                     "no plan fits: the items need 5120 bytes or more, and there are 5119")
    yield from succeeds(run("plan", path, "--capacity", "5K"))
    for text, says in (("", r"bad\.csv:1: there is no column"), (HEADER + "a,1,1,1\n", r"bad\.csv:2: the upper time"),
                       (HEADER + "a,0,1,0\n", "the size is 0, of 'a'"), (HEADER + "a,0,1\n", "lacks the column 'size'")):
        yield from fails(run("plan", write("bad.csv", text)), 1, says)
    yield from fails(run("plan", "none.csv"), 1, "none.csv")
    yield from fails(run("plan", path, "--csv", "no/folder.csv"), 1, "no/folder")
    for limit in ("0", "-1", "x", "", "1s", "1e99", "nan", "inf", " 1"):
        yield from usage("plan", path, "--limit", limit, pattern="--limit takes seconds")
    for capacity in ("x", "", "1K,", ",", "1K,,2", "-1", "1.5K", "9" * 40):
        yield from usage("plan", path, "--capacity", capacity, pattern="--capacity takes sizes")
    yield from usage("plan", path, "--capacity", ",".join(["1K"] * 1025), pattern="more than 1024")
    yield from usage("plan", path, "--steps", "x", pattern="steps")
    yield from usage("plan", path, "--csv", path, pattern="different files")
    yield from usage("plan", path, "--json", "--csv", "-", pattern="one of --json, --csv")
    yield from usage("plan", path, "--check", "--limit", "1", pattern="--check makes no plan")


MODEL = """
import sys
from onnx import TensorProto, helper, save
vector = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
         helper.make_node("Add", ["a", "b"], ["y"])]
weights = helper.make_tensor("w", TensorProto.FLOAT, [16, 32], [0.0] * 512)
save(helper.make_model(helper.make_graph(nodes, "g", [vector("x", "batch", 16)], [vector("y", "batch", 32)],
                                         [weights])), sys.argv[1])
"""


def case_plan_of_an_onnx_graph():
    """docs/examples/onnx_lifetimes.py lists the tensors of a graph"""
    python = next((p for p in (sys.executable, "/usr/bin/python3")
                   if not subprocess.run([p, "-c", "import onnx"], capture_output=True, check=False).returncode), None)
    if not python:
        raise Skipped("python3-onnx is not installed")
    subprocess.run([python, "-c", MODEL, here() / "model.onnx"], check=True)
    script = [python, ROOT / "docs/examples/onnx_lifetimes.py", here() / "model.onnx", "--dim", "batch=2"]
    listed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    if listed != "id,lower,upper,size\nx,0,1,128\na,0,3,256\nb,1,3,256\ny,2,3,256\n":
        yield listed
    if plan(write("model.csv", listed))["peak_bytes"] != 768:
        yield "another peak"
    more = subprocess.run([*script, "--weights"], capture_output=True, text=True, check=True).stdout
    if more != listed + "w,0,3,2048\n":
        yield more


def case_plan_is_repeated_by_seed_and_steps():
    # 5 items at a time, of nearly equal sizes: no order is the best
    lines = [f"{i},{i},{i + 4 + i % 3},{1000 + i * 7919 % 400}" for i in range(300)]
    path = write("many.csv", HEADER + "\n".join(lines) + "\n")
    outs = [execute("plan", path, "--steps", "3000000", "--seed", seed, "--csv", "-").stdout for seed in (1, 1, 2)]
    if outs[0] != outs[1] or not outs[0]:
        yield "two runs differ"


def case_plan_of_instances_of_others():
    """Plans of MiniMalloc's instances within the published capacity, and proofs"""
    if not DATA:
        skip_without_data()
    folder = pathlib.Path(DATA) / "static"
    for path in sorted(folder.glob("*.1048576.csv")):
        value = plan(path, "--capacity", "1M", "--limit", "60")
        if value["peak_bytes"] > MIB:
            yield f"{path.name}: {value}"
    for name, limit in (("A.1048576", 60), ("G.1048576", 60), ("idealloc-G_1", 60), ("idealloc-resnet50", 60)):
        if not plan(folder / f"{name}.csv", "--limit", limit)["proven_optimal"]:
            yield f"{name}: not proven"


run_all(globals())
