# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the wheel and the source archive of the Python package; pip calls it as PEP 517 says.

The wheel has the package, libquire.so.0 and the tool, which the meson and the compiler of the machine build in a
temporary folder. docs/install.md has the settings; each is an option of pip's --config-settings or a variable:

    tag=manylinux, QUIRE_WHEEL_TAG         the tag of the glibc that the programs need
    setup-args=ARGUMENTS, QUIRE_SETUP_ARGS more arguments of meson setup
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile

import quire_elf

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = "src/adapters/python/quire"
LIBRARY = "libquire.so.0"
TOOL = "quire"
# what a build without tests reads; the archive has the documents as well
ARCHIVED = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "backends", "bench", "docs", "include",
            "meson.build", "meson_options.txt", "packaging", "scripts", "src")
OPTIONS = ("--buildtype=release", "--wrap-mode=nofallback", "-Ddefault_library=shared", "-Dprefer_static=true",
           "-Dtool=enabled", *(f"-D{name}=disabled" for name in ("adapters", "bench", "docs", "man", "python")))
# others' code that may be in the programs, and the packages that have its licence
LICENCES = {"jansson": ("libjansson-dev", "jansson-devel", "jansson"),
            "volk": ("libvulkan-volk-dev", "volk-devel", "volk")}
# the times in archives unless SOURCE_DATE_EPOCH is set: the first that a zip file can have
FIRST_TIME = 315532800


def stop(sentence):
    """Ends the process: pip shows what it printed, which then has no trace of calls."""
    sys.exit(f"quire: {sentence}")


def version():
    try:
        text = (ROOT / "meson.build").read_text(encoding="utf-8")
    except OSError:
        stop(f"the sources are not in {ROOT}; pip before 21.3 builds in a copy of one folder, so use a later one")
    return re.search(r"version: '([^']+)'", text)[1]


def licence():
    return re.search(r"license: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]


def setting(settings, name, variable):
    """A setting of pip as one text; pip gives a list where it is named more than once."""
    value = (settings or {}).get(name, os.environ.get(variable, ""))
    return value if isinstance(value, str) else " ".join(value)


def times():
    """The time of every file in an archive, in seconds."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "") or str(FIRST_TIME)
    if not text.isdecimal():
        stop(f"SOURCE_DATE_EPOCH is {text!r}; it must be a number of seconds")
    return max(int(text), FIRST_TIME)


# ---- the programs ------------------------------------------------------------------------------------


def reason_of(output):
    """One sentence for a failed meson setup."""
    if re.search(r"Unknown compiler|Compiler .* can ?not compile", output):
        return "there is no C compiler that works; install gcc or clang, or name one in CC"
    if re.search(r'Dependency "jansson" not found', output):
        if not shutil.which("pkg-config") and not shutil.which("pkgconf"):
            return "pkg-config is missing, which finds jansson; install pkg-config"
        return "jansson is missing, which the tool needs; install libjansson-dev (Debian) or jansson-devel (Fedora)"
    errors = re.findall(r"ERROR: (.*)", output)
    return f"meson setup failed: {errors[0] if errors else output.strip()[-2000:]}"


def run(command, explain):
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              encoding="utf-8", errors="replace", env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        stop(f"{command[0]} is missing; install {command[0]}, or let pip get it by a build with isolation")
    if done.returncode:
        stop(explain(done.stdout))


def build(folder, settings):
    """The files of the two programs. meson install would need every adapter, so that two targets are built."""
    more = shlex.split(setting(settings, "setup-args", "QUIRE_SETUP_ARGS"))
    run(["meson", "setup", str(folder), str(ROOT), *OPTIONS, *more], reason_of)
    library = f"libquire.so.{version()}"
    run(["ninja", "-C", str(folder), TOOL, library],
        lambda output: "the build failed:\n" + "\n".join(output.splitlines()[-40:]))
    return {LIBRARY: folder / library, TOOL: folder / TOOL}


def kind_of_tag(settings):
    """Linux or manylinux, known before the build, which takes long."""
    wanted = setting(settings, "tag", "QUIRE_WHEEL_TAG") or "linux"
    if wanted not in ("linux", "manylinux"):
        stop(f"the tag {wanted!r} is unknown; there are linux and manylinux")
    return wanted


def system_name():
    system = re.sub(r"[-.]", "_", sysconfig.get_platform())
    if not system.startswith("linux_"):
        stop(f"wheels are for Linux, and this system is {system}")
    return system


def platform_tag(programs, kind):
    system = system_name()
    if kind == "linux":
        return system
    try:
        return quire_elf.manylinux_tag(programs, system[len("linux_"):])
    except quire_elf.Refused as reason:
        stop(str(reason))


# ---- the files of the wheel --------------------------------------------------------------------------


def licences():
    """{name: bytes} of the licences of the code in the wheel. A machine may lack those of others."""
    found = {"LICENSE": (ROOT / "LICENSE").read_bytes()}
    for name, packages in LICENCES.items():
        texts = [pathlib.Path(folder, package, file) for package in packages
                 for folder, file in (("/usr/share/doc", "copyright"), ("/usr/share/licenses", "LICENSE"))]
        found.update({f"{name}.txt": text.read_bytes() for text in texts[::-1] if text.is_file()})
    return found


def metadata(names):
    """METADATA; `names` are the files of the licences."""
    head = [("Metadata-Version", "2.4"), ("Name", "quire"), ("Version", version()),
            ("Summary", "Suballocation of device memory: pages, placement, insight"),
            ("License-Expression", licence()), *(("License-File", name) for name in names),
            ("Classifier", "Operating System :: POSIX :: Linux"),
            ("Classifier", "Programming Language :: Python :: 3"), ("Classifier", "Typing :: Typed"),
            ("Requires-Python", ">=3.9"), ("Description-Content-Type", "text/markdown; charset=UTF-8")]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return "".join(f"{name}: {value}\n" for name, value in head) + "\n" + readme


def package_files():
    return {f"quire/{path.name}": path.read_bytes() for path in sorted((ROOT / PACKAGE).iterdir())
            if path.name != "_installed.py" and (path.suffix == ".py" or path.name == "py.typed")}


def installed():
    """The module _installed: the two programs are in the folder of the package."""
    text = (ROOT / PACKAGE).with_name("installed.py.in").read_text(encoding="utf-8")
    return text.replace("@LIBRARY@", LIBRARY).replace("@TOOL@", TOOL)


def record(files, name):
    """RECORD: the digest and the size of every file but its own."""
    def line(path, data):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        return f"{path},sha256={digest},{len(data)}\n"

    return "".join(line(path, data) for path, data in files.items()) + f"{name},,\n"


def wheel_files(programs, tag):
    """{path: bytes} of the wheel; RECORD is the last, as the format recommends."""
    info = f"quire-{version()}.dist-info"
    texts = licences()
    files = package_files()
    files["quire/_installed.py"] = installed().encode()
    files.update({f"quire/{name}": path.read_bytes() for name, path in programs.items()})
    files.update({f"{info}/licenses/{name}": data for name, data in texts.items()})
    files[f"{info}/METADATA"] = metadata(texts).encode()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: build_quire {version()}\n"
                              f"Root-Is-Purelib: false\nTag: py3-none-{tag}\n").encode()
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\nquire = quire.__main__:main\n"
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD").encode()
    return files


def write_wheel(path, files, executable):
    moment = time.gmtime(times())[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: the upper half of external_attr is the mode
            entry.external_attr = (0o100755 if name in executable else 0o100644) << 16
            archive.writestr(entry, data)


# ---- what pip calls ----------------------------------------------------------------------------------


def get_requires_for_build_wheel(config_settings=None):
    """Packages that have the programs which the machine lacks."""
    return [name for name in ("meson", "ninja") if not shutil.which(name)]


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    kind, _, _ = kind_of_tag(config_settings), system_name(), times()  # wrong ones are refused before the build
    with tempfile.TemporaryDirectory(prefix="quire-wheel-") as folder:
        programs = build(pathlib.Path(folder, "build"), config_settings)
        tag = platform_tag(programs, kind)
        files = wheel_files(programs, tag)
    name = f"quire-{version()}-py3-none-{tag}.whl"
    write_wheel(pathlib.Path(wheel_directory, name), files, {f"quire/{program}" for program in programs})
    return name


def archived():
    """The paths of the archive's files, without caches and hidden ones."""
    for top in ARCHIVED:
        path = ROOT / top
        if path.is_file():
            yield path
        for file in sorted(path.rglob("*")) if path.is_dir() else ():
            parts = file.relative_to(ROOT).parts
            if file.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
                yield file


def build_sdist(sdist_directory, config_settings=None):
    base = f"quire-{version()}"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        def add(name, data, mode=0o644):
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), times(), mode
            archive.addfile(entry, io.BytesIO(data))

        for path in archived():
            add(path.relative_to(ROOT), path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        # at the top of an archive, where pip looks for it
        project = (HERE / "pyproject.toml").read_text(encoding="utf-8")
        add("pyproject.toml", project.replace('["."]', '["packaging/python"]').encode())
        add("PKG-INFO", metadata(["LICENSE"]).encode())
    name = f"{base}.tar.gz"
    with open(pathlib.Path(sdist_directory, name), "wb") as out:
        with gzip.GzipFile(fileobj=out, mode="wb", filename="", mtime=times()) as packed:
            packed.write(plain.getvalue())
    return name
