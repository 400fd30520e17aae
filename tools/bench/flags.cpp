#include "tools/bench/flags.h"

#include "sim/cluster/machine/import/machine_argument.h"

namespace trellis::tools {
namespace {

using O = BenchOptions;
using enum Section;
using enum measure::BenchStyle;

constexpr std::int64_t most_iterations = 100'000'000, most_cycles = 1 << 30, most_threads = 1024,
                       most_unaligned = 1 << 20;
constexpr std::int64_t most_repeated = 1'000'000;
constexpr std::int64_t most_seconds = 10'000'000;  // same limit as TRELLIS_TIMEOUT
constexpr const char* initial = nullptr;

constexpr const char* no_thread_blocks = "there are no thread blocks on this device";

Flag idle_flag(const char* names, std::vector<std::string_view> allowed, const char* why) {
  return {.section = idle, .names = names, .allowed = std::move(allowed), .why = why};
}

// clang-format off
const std::vector<Flag> all_flags = {
    {measured, "-b,--minbytes", "Smallest size: 8, 64KB, 1M, 2GiB", &O::least, initial},
    {measured, "-e,--maxbytes", "Largest size", &O::most, initial},
    {measured, "-i,--stepbytes", "Increment between sizes", &O::step, "1M"},
    {measured, "-f,--stepfactor", "Factor between sizes", &O::factor},
    {measured, "-d,--datatype", "Type, as float, bf16 or int8, or all", &O::type, "float"},
    {measured, "-o,--op", "sum, prod, min, max, avg, mulsum, or all", &O::reduction, initial},
    {measured, "-r,--root", "Root rank, for operations that have one; or all", &O::root, "0"},
    {measured, "-n,--iters", "Iterations", &O::iterations, "20 to 1000", 1, most_iterations},
    {measured, "-w,--warmup_iters", "Iterations before, which do not count", &O::warm_ups, initial, 0, most_iterations},
    {measured, "-m,--agg_iters", "Operations in a group", &O::grouped, initial, 1, 4096},
    {measured, "--inside", "Operations timed as one", &O::repeated, initial, 1, most_repeated},
    {measured, "-N,--run_cycles", "Number of times to run the whole benchmark; 0: until Ctrl-C", &O::cycles, initial, 0, most_cycles},
    {measured, "-R,--local_register", "1 or 2: buffers in the device's memory, which peers read directly", &O::registered, initial, 0, 2},
    {measured, "-u,--unalign", "Elements past an aligned address where buffers begin", &O::unaligned, initial, 0, most_unaligned},
    {measured, "--custom-src-target-pairs", "Who sends to whom in permute: 0:1,1:0 or [[0,1],[1,0]]", &O::pairs},
    {measured, "--variable-size-op-metadata", "The name of a file of JSON with the counts of the _v forms, {\"counts\": [1, 2]} or a "
               "list for each sender [[1, 2], [2, 1]]; they are scaled to each size", &O::counts_file},
    {measured, "--algorithm", "One for all sizes: ring*2/4", &O::algorithm, "by the selection table"},
    {measured, "--in-place", "Measure in place, too (as nccl-tests does anyway)", &O::in_place},
    {measured, "--untouched", "Leave buffers alone between iterations", &O::untouched},

    {simulated, "--on", "The machine: sim:trn2.48xlarge, sim:torus:4x4", &O::on},
    {simulated, "--era", "The software's generation: 2025, 2026-host", &O::era, "the machine's usual one"},
    {simulated, "--what-if", sim::change_grammar, &O::what_if},
    {simulated, "--no-interval", "Do not print the interval of each time", &O::no_interval},

    {ranks, "--ranks", "Ranks", &O::ranks, "one for each core", 1, most_ranks_asked},
    {ranks, "-t,--nthreads", "Ranks as threads of one process; -g multiplies them", &O::threads_each, initial, 1, most_threads},
    {ranks, "-g,--ngpus", "Multiplies -t: -t 2 -g 4 are 8 ranks, each a thread", &O::devices_each, initial, 1, most_threads},
    {ranks, "--threads", "Ranks are threads of one process", &O::threads},
    {ranks, "--transport", "As TRELLIS_TRANSPORT: shared_memory, libfabric, hybrid", &O::transport},
    {ranks, "--provider", "As TRELLIS_PROVIDER: libfabric's, such as efa or tcp", &O::provider},
    {ranks, "--device", "Device whose memory and collectives are used: host, neuron, or sim:MACHINE, whose time is simulated", &O::device, "TRELLIS_DEVICE, or host"},
    {ranks, "-s,--hosts", "Hosts that it starts itself on: node0,node1 or node0:4,node1:4", &O::hosts},
    {ranks, "--hosts-file", "A file of hosts, one per line: node0, node0:4 or node0 slots=4", &O::hosts_file},
    {ranks, "--rsh", "Command that runs a program on another host", &O::shell, initial},
    {ranks, "--no-pin", "Do not keep ranks on cores of their own", &O::no_pin},
    {ranks, "--streams", "Operations at a time, each on a stream and communicator of its own", &O::streams, initial, 1, 64},
    {ranks, "-T,--timeout", "Seconds that a rank waits for another, 0: as long as it takes", &O::timeout_s, "TRELLIS_TIMEOUT, or 30", 0, most_seconds},

    {output, "-c,--check", "Passes of checking with random numbers, 0 for none; or all_ones", &O::check, "1"},
    {output, "--style", "Whose table: nccl, of nccl-tests, or nccom, of nccom-test", &O::style, "nccl"},
    {output, "-a,--average", "An iteration's time: 0 rank 0's, 1 mean, 2 least, 3 most", &O::average, "3", 0, 3},
    {output, "-C,--report_cputime", "1: CPU time instead of time", &O::cpu_time, initial, 0, 1},
    {output, "-S,--report_timestamps", "1: when each size was done", &O::timestamps, initial, 0, 1, nccl},
    {output, "-M,--memory", "1: memory that communicators use", &O::memory, initial, 0, 1, nccl},
    {output, "-I,--per_iter_timing", "1: min, max, p99, cv of the iterations", &O::per_iteration, initial, 0, 1, nccl},
    {output, "-K,--per_iter_skip", "Iterations to skip in these statistics; fewer than -n", &O::skipped, initial, 0,
             most_iterations, nccl},
    {output, "--seed", "Seed of the random data", &O::seed, initial},
    {output, "--interpret-up-to", "Largest size that is checked with random numbers", &O::interpret_up_to, initial},
    {output, "--show-algorithm", "A column with the algorithm", &O::show_algorithm},
    {output, "--stats", "Columns of times: avg, p50, p99", &O::stats, "these three", 0, -1, nccom},
    {output, "--show-input-output-size", "Columns with the bytes of all inputs and outputs", &O::show_sizes, "", 0, -1, nccom},
    {output, "-J,--output_file,--json,--report-to-json-file", "Write results as JSON", &O::json},
    {output, "--csv", "Write results as comma-separated values", &O::csv},
    {output, "--plot", "Draw time and bandwidth against size as SVG", &O::plot},

    idle_flag("-p,--parallel_init", {"0", "1"}, "ranks always begin side by side"),
    idle_flag("-z,--blocking", {"0", "1"}, "a call without a stream returns when it is done, which is 1"),
    idle_flag("-y,--stream_null", {"0", "1"}, "with one stream it is always the null stream, which is the calling thread"),
    idle_flag("-G,--cudagraph", {"0"}, "there are no graphs: plans are kept by themselves"),
    idle_flag("-x,--cta_policy", {"0"}, no_thread_blocks),
    idle_flag("-D,--device_implementation", {"0"}, "there are no kernels that communicate on this device"),
    idle_flag("-V,--device_cta_count", {"0", "16"}, no_thread_blocks)};
// clang-format on

}  // namespace

std::span<const Flag> bench_flags() { return all_flags; }

std::string_view Flag::short_name() const {
  const std::string_view all = names;
  return all.substr(0, all.find(','));
}

std::string_view Flag::long_name() const {
  const std::string_view all = names;
  const std::size_t at = all.find("--");
  if (at == std::string_view::npos) return short_name();
  return all.substr(at, all.find(',', at) - at);
}

}  // namespace trellis::tools
