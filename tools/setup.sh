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
  "${as_root[@]}" apt-get update -qq
  # shellcheck disable=SC2086  # a list of words
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
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
    cmake --build --preset "$preset" -j "$(nproc)" "$@"
    return
  fi
  cmake --build --preset "$preset" -j "$(nproc)" "$@" -- -k 0 2>&1 | tee "build/$preset/groups.log" && return
  sed -n 's/^FAILED: .*unity_\(.*\)_cxx\.cxx\.o.*/\1/p' "build/$preset/groups.log" >>"build/$preset/alone"
  [ -s "build/$preset/alone" ] || return
  configure_preset "$preset" && cmake --build --preset "$preset" -j "$(nproc)" "$@"
}

# Both.
build_preset() {
  configure_preset "$1" && build_configured "$@"
}
