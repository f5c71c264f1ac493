# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# build.sh - sourced by scripts/test-gpu: builds its programs with meson, or without it by the C compiler
# alone. $programs is the folder of the programs, whose paths in it are those of meson. $builder says what
# built them.

all_programs="tests/contract/contract-cuda tests/plain/plain-cuda_codes tests/plain/plain-cuda_answers
    tests/gpu/facts tests/gpu/chunks tests/gpu/corners tests/gpu/captures bench/bench_cuda"
# folders of src/adapters whose library the scripts of tests/gpu/frameworks load; they need C++
adapters="torch"

# has PROGRAM: whether it is built
has() {
    [ -x "$programs/$1" ]
}

# ---- with meson -----------------------------------------------------------------------------------------

# The tool needs jansson, the other programs the headers of Vulkan and volk, the CUDA Toolkit, and NVTX.
build_with_meson() {
    programs=build-gpu builder=meson
    again=--reconfigure
    [ -e "$programs/build.ninja" ] || again=""
    limited 60 meson setup "$programs" $again -Dbuildtype=release -Dtests=auto -Dtool=auto -Dbench=enabled \
        -Dcuda=enabled -Dvulkan=auto -Dman=disabled -Dstatic_tests=false &&
        limited 200 ninja -C "$programs" $all_programs || return 1
    for extra in quire tests/contract/contract-vulkan tests/plain/plain-cuda_abi tests/plain/plain-cuda_vulkan tests/plain/plain-cuda_overflow; do
        grep -q "^build $extra:" "$programs/build.ninja" || continue
        limited 100 ninja -C "$programs" $extra || record failed "build of $extra" "see build.txt"
    done
    libraries=$(sed -nE 's#^build ((src/adapters/[^ ]*/)?libquire[^ ]*\.so[^ :]*): c(pp)?_LINKER.*#\1#p' \
        "$programs/build.ninja")
    limited 100 ninja -k 0 -C "$programs" $libraries || record failed "build of the libraries" "see build.txt"
}

# ---- without ----------------------------------------------------------------------------------------------

# Prints the compiler. nvcc needs one of them too.
find_compiler() {
    for name in ${CC:-} cc gcc clang ${NVCC_CCBIN:-} x86_64-linux-gnu-gcc x86_64-conda-linux-gnu-cc \
        gcc-15 gcc-14 gcc-13 gcc-12 gcc-11 clang-18 clang-17 clang-16 clang-15 clang-14; do
        command -v "$name" && return
    done
    return 1
}

# listed FOLDER TEXT: the sources that a meson.build names from the line with TEXT to the next bracket
listed() {
    awk -v text="$2" 'index($0, text) { on = 1 } on { print } on && /\)/ { exit }' "$1/meson.build" |
        grep -o "'[^']*\.c'" | tr -d "'" | sed -E -e "s#^#$1/#" -e ':a' -e 's#[^/]+/\.\./##' -e 'ta'
}

# The library without Vulkan. The functions that say so are made by Python, and only Python calls them.
library_sources() {
    ls src/base/*.c src/plan/*.c src/space/*.c src/space/*/*.c src/core/*/*.c src/api/*.c src/trace/*.c src/render/*.c \
        backends/host/*.c backends/cuda/*.c backends/plugin/*.c |
        grep -v '^src/core/debug/'
    [ ! -s "$programs/absent_vulkan.c" ] || echo "$programs/absent_vulkan.c"
}

support_sources() {
    echo tests/support/plain.c
    listed tests/support 'support = files('
}

# sources_of PROGRAM: beside those of the library
sources_of() {
    case $1 in
    tests/contract/contract-cuda)
        echo tests/contract/main.c tests/contract/cuda.c tests/support/cuda_bench.c \
            tests/support/cuda_growing.c tests/support/cuda/model.c
        listed tests/contract 'contract_sources = '
        ;;
    tests/plain/plain-cuda_codes)
        echo tests/plain/cuda_codes.c tests/support/cuda_rows.c tests/support/cuda_direct.c
        ;;
    tests/plain/plain-cuda_answers)
        echo tests/plain/cuda_answers.c tests/plain/cuda_answers_scene.c tests/support/cuda_rows.c \
            tests/support/cuda_direct.c
        ;;
    tests/plain/plain-cuda_abi) echo tests/plain/cuda_abi.c ;;
    tests/plain/plain-cuda_overflow)
        echo tests/plain/cuda_overflow.c bench/cuda_kernel.c src/adapters/nvtx/nvtx.c
        ;;
    tests/gpu/*) listed tests/gpu "executable('${1##*/}'" ;;
    bench/bench_cuda)
        listed bench 'bench_common = '
        listed bench "executable('bench_cuda'"
        listed src 'workload_sources = '
        ;;
    esac
    case $1 in tests/*) support_sources ;; esac
}

# compile SOURCE...: run by xargs. Without its object a program is not linked; others may not need it.
compile() {
    for source in "$@"; do
        language="$compiler -std=c11"
        [ "$source" = "${source%.cpp}" ] || language="$cxx -std=c++17"
        $language -fPIC -fvisibility=hidden $optimization -DNDEBUG -D_GNU_SOURCE -DCONTRACT_SUBJECTS=cuda_subjects \
            -DFAKE_CUDA_LIBRARY='"libcuda.so.1"' -I. -Iinclude -Ibackends/vulkan/stand_in \
            ${toolkit:+-isystem "$toolkit"} -pthread -c "$source" \
            -o "$programs/objects/${source//\//-}.o" || echo "FAILED: $source"
    done
}

# objects_of SOURCE...
objects_of() {
    for source in "$@"; do
        echo "$programs/objects/${source//\//-}.o"
    done
}

# link PROGRAM
link() {
    mkdir -p "$programs/${1%/*}"
    "$compiler" -pthread $(objects_of $(library_sources) $(sources_of "$1")) -o "$programs/$1" -ldl -lm
}

# The libraries, at the paths of meson. That of an adapter finds libquire.so beside its folder.
link_libraries() {
    "$compiler" -shared -pthread $(objects_of $(library_sources)) -Wl,-soname,libquire.so.0 \
        -o "$programs/libquire.so" -ldl || record failed "build of libquire.so" "see build.txt"
    ln -sf libquire.so "$programs/libquire.so.0"
    for adapter in $adapters; do
        folder=$programs/src/adapters/$adapter
        mkdir -p "$folder"
        "$cxx" -shared -pthread $(objects_of src/adapters/$adapter/*.c*) -L"$programs" -lquire \
            -Wl,-rpath,'$ORIGIN/../../..' -Wl,-z,nodelete -ldl -o "$folder/libquire_$adapter.so" ||
            record failed "build of libquire_$adapter.so" "see build.txt"
    done
}

adapter_sources() {
    for adapter in $adapters; do
        ls src/adapters/$adapter/*.c*
    done
}

# The folder of the headers of the CUDA Toolkit, or nothing
find_toolkit() {
    for folder in /usr/local/cuda/include /opt/cuda/include /usr/lib/cuda/include /usr/include; do
        [ ! -e "$folder/cudaTypedefs.h" ] || { echo "$folder" && return; }
    done
}

# The programs that this machine has the headers for
buildable() {
    echo $all_programs
    [ -z "$toolkit" ] || echo tests/plain/plain-cuda_abi
    [ ! -e "$toolkit/nvtx3/nvToolsExtMem.h" ] || echo tests/plain/plain-cuda_overflow
}

# Compiles everything anew: a run on a machine without meson is rare.
build_with_compiler() {
    programs=build-gpu-cc
    compiler=$(find_compiler) || { echo "FAILED: no C compiler was found" && return 1; }
    cxx=$(command -v c++ || command -v g++ || command -v clang++) || {
        skip "libraries of adapters" "no C++ compiler was found"
        adapters=""
    }
    builder=$compiler
    optimization=-O2
    [ "$quick" = no ] || optimization=-O0
    toolkit=$(find_toolkit)
    list=$(buildable)
    rm -rf "$programs"
    mkdir -p "$programs/objects"
    ! command -v python3 >/dev/null ||
        python3 scripts/interface.py include/quire absent vulkan >"$programs/absent_vulkan.c"
    export programs compiler cxx optimization toolkit
    export -f compile
    { library_sources && adapter_sources && for program in $list; do sources_of $program; done; } | tr ' ' '\n' | sort -u |
        limited 300 xargs -n 8 -P "$(nproc 2>/dev/null || echo 2)" bash -c 'compile "$@"' bash
    for program in $list; do
        link $program || record failed "build of $program" "see build.txt"
    done
    link_libraries
    has tests/gpu/corners
}

# ---- both -------------------------------------------------------------------------------------------------

# A machine without any compiler may still be able to install one, but not for long.
install_compiler() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    timeout -k 1 20 apt-get -qq install -y --no-install-recommends gcc libc6-dev
}

# Prints the first program that a build with meson lacks
missing() {
    for tool in meson ninja python3; do
        command -v $tool >/dev/null || { echo "$tool is missing" && return; }
    done
}

build() {
    log=$logs/build.txt
    find_compiler >/dev/null || install_compiler >>"$log" 2>&1
    reason=$(missing)
    if [ -z "$reason" ]; then
        build_with_meson >>"$log" 2>&1 && return
        reason="it failed: see build.txt"
    fi
    skip "the build with meson" "$reason"
    build_with_compiler >>"$log" 2>&1
}
