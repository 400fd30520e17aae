// Runs a function on every rank of a communicator: ranks are threads or processes, as the transport needs.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/transports/registry.h"

namespace trellis::ccl {

// What a rank's function may say when it is done: empty is well. What it throws comes back as text.
using RankFunction = std::function<void(Communicator&)>;

// Empty when every rank ended well; else a line for each that did not.
std::string run_threads(Rank ranks, const RankFunction&, const Config& = {});
// Processes that are stopped once all others have ended are killed when nobody has continued them for so long.
std::string run_processes(Rank ranks, const RankFunction&, const Config& = {}, std::chrono::milliseconds stopped = {});

// Threads over loopback, each with the core of its number of such a device, as device::open takes it.
using DeviceFunction = std::function<void(Communicator&, device::Device&)>;
std::string run_devices(const std::string& device, Rank ranks, const DeviceFunction&,
                        const std::string& algorithm = "");
// The same with the device that each rank is given.
std::string run_devices(const std::function<std::shared_ptr<device::Device>(Rank)>&, Rank ranks, const DeviceFunction&,
                        const std::string& algorithm = "");

// As the host's name in a configuration: each rank is on the host of its letter, as in "ABBA".
inline constexpr std::string_view hosts_by_rank = "by rank: ";
std::string run_ranks(std::string_view transport, Rank ranks, const RankFunction&, const Config& = {});

// Zero, in memory that processes share with those they are forked from.
std::atomic<int>& seen_by_all();
void await(const std::atomic<int>& count, int enough);  // throws when the others never come so far

// Whether each line of what a run says holds one of these: empty says nothing, and does not.
bool each_line_has_one_of(const std::string& said, const std::vector<std::string>&);

// A deadline that a test waits for: no rank that is there is away for so long, however busy the machine.
inline constexpr std::chrono::seconds long_deadline{6};

// What each case says, as run_ranks does, each in a process of its own: those that wait for a deadline wait together.
using SaidByCase = std::function<std::string(std::size_t number)>;
std::vector<std::string> at_once(std::size_t cases, const SaidByCase&);
// The same for each transport that can be used here; a line for each that says something.
std::string over_each_transport(const std::function<std::string(const std::string& transport)>&);

// The transports that this machine can use, out of the registry. Ranks of one that knows hosts are on hosts of two.
inline auto every_transport() { return testing::ValuesIn(usable_transports()); }
std::vector<std::string> between_processes();  // those of these whose ranks are processes
inline bool across_hosts(std::string_view transport) {
  return transport_named(transport).reach == TransportKind::Reach::hosts;
}
// The same with numbers of ranks: all of them on one host, where they take less time, and some across hosts.
std::vector<std::tuple<std::string, Rank>> transports_and_ranks(const std::vector<Rank>& all,
                                                                const std::vector<Rank>& on_hosts);

}  // namespace trellis::ccl
