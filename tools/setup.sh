# Sourced by the scripts in this folder: the Debian packages that each needs, and how missing ones are installed.

packages_build="g++ cmake ninja-build pkg-config python3 libfmt-dev libcli11-dev nlohmann-json3-dev libpugixml-dev \
libdnnl-dev libhwloc-dev nettle-dev libgtest-dev libbenchmark-dev libpmix-dev \
libfabric-dev libyaml-cpp-dev"
packages_test="$packages_build clang-format openmpi-bin"
packages_fuzz="$packages_build clang libclang-rt-14-dev libomp-dev"

# Prints those of the named packages that are not installed.
missing_packages() {
  local installed name
  installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^installed //p' | tr '\n' ' ') "
  for name in "$@"; do
    case "$installed" in *" $name "*) ;; *) echo "$name" ;; esac
  done
}

# Installs those of the named packages that are missing. Without permission, prints the command to run and exits 2.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "$0: not a Debian system; going on in the hope that these are there: $*" >&2
    return
  fi
  local missing as_root=()
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      echo "$0: some Debian packages are missing; run this as root and try again:" >&2
      echo "apt-get update && apt-get install -y --no-install-recommends $missing" >&2
      exit 2
    fi
  fi
  echo "installing Debian packages: $missing"
  # A new machine's own upgrades may hold the lock, and a mirror may miss a request. Where a list that these packages
  # don't need can't be had, the installation decides.
  local patient=(-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  "${as_root[@]}" apt-get "${patient[@]}" update -qq ||
    echo "$0: apt-get update failed; going on with the lists that are there" >&2
  # shellcheck disable=SC2086  # a list of words
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${patient[@]}" install -y -qq \
    --no-install-recommends $missing
}

# How many CPUs this process may keep busy: those that it may run on, and no more than its control groups' quotas. The
# arguments, for tests, are where the groups are, and the file that names the process's own.
usable_cpus() {
  local groups=${1:-/sys/fs/cgroup} own=${2:-/proc/self/cgroup} cpus group quota period
  cpus=$(nproc)
  group=$(sed -n 's/^0:://p' "$own" 2>/dev/null) || group=
  group=${group%/}
  while :; do
    if read -r quota period 2>/dev/null <"$groups$group/cpu.max" && [ "$quota" != max ]; then
      quota=$(((quota + period - 1) / period))
      [ "$quota" -ge "$cpus" ] || cpus=$quota
    fi
    [ -n "$group" ] || break
    group=${group%/*}
  done
  echo "$cpus"
}

# How many compilers may run at once: one for each usable CPU, each with a gigabyte and a half of the memory that is
# available. The argument, for tests, is a file like /proc/meminfo.
compilers() {
  local cpus by_memory
  cpus=$(usable_cpus)
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' "${1:-/proc/meminfo}" 2>/dev/null) || by_memory=
  [ -n "$by_memory" ] && [ "$by_memory" -lt "$cpus" ] && cpus=$by_memory
  echo "$((cpus > 1 ? cpus : 1))"
}

# Goes before a command that starts tests: they end programs by signals, which a shell's background job, as this may be
# one, is started to ignore.
usual_signals=(env --default-signal=INT,QUIT,HUP,PIPE)

# Runs a command whose programs have sanitizers. Those of GCC 12 do not start reliably where addresses vary by more
# than 28 bits (vm.mmap_rnd_bits), so there addresses are the same in each run. Only root may read how many bits.
with_sanitizers() {
  local bits
  bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null) || bits=32
  if [ "$bits" -gt 28 ] && setarch -R true 2>/dev/null; then set -- setarch -R "$@"; fi
  "$@"
}

# Configures a preset; further arguments go to cmake. With TRELLIS_UNITY=1 a new build compiles its sources in groups,
# which is faster where everything is built.
configure_preset() {
  local said groups=()
  [ -z "${TRELLIS_UNITY-}" ] || [ -e "build/$1/CMakeCache.txt" ] || groups=(-DTRELLIS_UNITY=ON)
  said=$(cmake --preset "$1" "${groups[@]}" "${@:2}" 2>&1) || { echo "$said" >&2; return 1; }
}

# Builds a preset that is configured; further arguments go to the build (--target NAME). Groups that do not compile,
# although cmake/unity.py holds that they do, are noted, and their sources are compiled alone.
build_configured() {
  local preset=$1
  shift
  if ! grep -q '^TRELLIS_UNITY:BOOL=ON' "build/$preset/CMakeCache.txt"; then
    cmake --build --preset "$preset" -j "$(compilers)" "$@"
    return
  fi
  cmake --build --preset "$preset" -j "$(compilers)" "$@" -- -k 0 2>&1 | tee "build/$preset/groups.log" && return
  sed -n 's/^FAILED: .*unity_\(.*\)_cxx\.cxx\.o.*/\1/p' "build/$preset/groups.log" >>"build/$preset/alone"
  [ -s "build/$preset/alone" ] || return
  configure_preset "$preset" && cmake --build --preset "$preset" -j "$(compilers)" "$@"
}

# Both.
build_preset() {
  configure_preset "$1" && build_configured "$@"
}
