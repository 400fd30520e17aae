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

// What a rank does. Its exceptions come back as text.
using RankFunction = std::function<void(Communicator&)>;

// Runs the function on ranks that are threads. Returns a line for each rank that did not end well.
std::string run_threads(Rank ranks, const RankFunction&, const Config& = {});
// The same with processes. Those still stopped when all others have ended are killed after the time `stopped`.
std::string run_processes(Rank ranks, const RankFunction&, const Config& = {}, std::chrono::milliseconds stopped = {});

// Ranks are threads over loopback; each opens the core with its number of this device, as named for device::open.
using DeviceFunction = std::function<void(Communicator&, device::Device&)>;
std::string run_devices(const std::string& device, Rank ranks, const DeviceFunction&,
                        const std::string& algorithm = "");
// The same with a device that the function gives each rank.
std::string run_devices(const std::function<std::shared_ptr<device::Device>(Rank)>&, Rank ranks, const DeviceFunction&,
                        const std::string& algorithm = "");

// If the host's name in a config begins with this, a letter for each rank follows, as in "ABBA", and ranks with equal
// letters are on one host.
inline constexpr std::string_view hosts_by_rank = "by rank: ";
std::string run_ranks(std::string_view transport, Rank ranks, const RankFunction&, const Config& = {});

// A new counter, at zero. Processes that are forked afterwards share it.
std::atomic<int>& seen_by_all();
void await(const std::atomic<int>& count, int enough);  // throws when the others never come so far

// Whether each line of a run's result contains one of these texts; false when it is empty.
bool each_line_has_one_of(const std::string& said, const std::vector<std::string>&);

// A deadline for tests that wait for one: no running rank is silent for so long, however busy the machine.
inline constexpr std::chrono::seconds long_deadline{6};

// Runs each case in a process of its own, all at the same time, so that cases which wait for a deadline wait together.
// Returns the cases' results.
using SaidByCase = std::function<std::string(std::size_t number)>;
std::vector<std::string> at_once(std::size_t cases, const SaidByCase&);
// The same with a case for each transport that can be used here. Returns a line for each whose result is not empty.
std::string over_each_transport(const std::function<std::string(const std::string& transport)>&);

// The registered transports that this machine can use. Over one that knows hosts, each host has two ranks.
inline auto every_transport() { return testing::ValuesIn(usable_transports()); }
std::vector<std::string> between_processes();  // those whose ranks are processes
inline bool across_hosts(std::string_view transport) {
  return transport_named(transport).reach == TransportFactory::Reach::hosts;
}
// Pairs of a usable transport and a number of ranks: from `on_hosts` if the transport crosses hosts, which takes more
// time, else from `all`.
std::vector<std::tuple<std::string, Rank>> transports_and_ranks(const std::vector<Rank>& all,
                                                                const std::vector<Rank>& on_hosts);

}  // namespace trellis::ccl
