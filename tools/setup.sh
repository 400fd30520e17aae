# Sourced by the scripts in this folder: the Debian packages that each needs, and how missing ones are installed.

packages_build="g++ cmake ninja-build pkg-config python3 libfmt-dev libcli11-dev nlohmann-json3-dev libpugixml-dev \
libdnnl-dev libhwloc-dev libgtest-dev libbenchmark-dev libpmix-dev \
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

configure_preset() {
  local said
  said=$(cmake --preset "$1" 2>&1) || { echo "$said" >&2; return 1; }
}

# Configures and builds a preset; further arguments go to the build (--target NAME).
build_preset() {
  local preset=$1
  shift
  configure_preset "$preset" || return
  cmake --build --preset "$preset" -j "$(nproc)" "$@"
}
