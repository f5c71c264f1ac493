# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folders of the sources and their order, as the table in docs/design.md has them."""

import collections

START, END = "<!-- allowed includes -->", "<!-- end of allowed includes -->"
PARTS = ("include", "src", "backends", "bench")
MAX_CYCLE = 4  # files of one folder that may use each other in a cycle

# own: headers and folders of the project that the folder may include; system: system headers
Folder = collections.namedtuple("Folder", "name own system")


def read_folders(root):
    """The rows `| folder | own headers | system headers |`, from the bottom folder to the top one."""
    text = (root / "docs/design.md").read_text()
    folders = []
    for line in text[text.index(START):text.index(END)].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`"):
            folders.append(Folder(cells[0].strip("`"), [c.strip(" `") for c in cells[1].split(",")],
                                  [c.strip(" `<>") for c in cells[2].split(",")]))
    return folders


class Order:
    """Compares two files, named from the root, by the positions of their folders in the table."""

    def __init__(self, folders):
        self.rank = {folder.name: i for i, folder in enumerate(folders)}

    def folder(self, path):
        """The longest folder of the table that contains the file; None if no folder does."""
        return max((f for f in self.rank if path.startswith(f + "/")), key=len, default=None)

    def is_upward(self, user, used):
        a, b = self.folder(user), self.folder(used)
        return a is not None and b is not None and self.rank[a] < self.rank[b]

    def inner_cycles(self, edges):
        """Cycles of more than MAX_CYCLE files in {file: files that it uses}, folder by folder."""
        inner = {a: [b for b in targets if self.folder(a) == self.folder(b)] for a, targets in edges.items()}
        return [c for c in cycles(inner) if len(c) > MAX_CYCLE]


def cycles(edges):
    """The strongly connected sets of at least two nodes (Tarjan's method)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in edges.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            start = stack.index(node)
            if len(stack) - start > 1:
                found.append(sorted(stack[start:]))
            del stack[start:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found
