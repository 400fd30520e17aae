#include "sim/cluster/simulate.h"

#include <algorithm>

#include "sim/cluster/answer/collective_answer.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/price/critical_path.h"
#include "sim/cluster/workload/play.h"

namespace trellis {
namespace {

using namespace sim;

std::vector<SimulatedLink> links_of(const CollectiveAnswer& answer, const Machine& machine) {
  std::vector<SimulatedLink> links;
  const double seconds = in_seconds(answer.price.time);
  for (ResourceId r = 0; r < answer.carried.size(); ++r) {
    const double carried = answer.carried[r], rate = machine.rate(r);
    if (carried > 0) links.push_back({machine.resource_name(r), carried, rate, carried / (rate * seconds)});
  }
  std::ranges::stable_sort(links, std::ranges::greater(), &SimulatedLink::busy);
  return links;
}

}  // namespace

Simulation simulate(const SimulationQuery& query) {
  PricingSession priced(typed_machine(query.machine, query.what_if));
  const Machine& machine = priced.machine();
  if (query.ranks < 0 || query.ranks > machine.ranks())
    throw std::invalid_argument(std::to_string(query.ranks) + " ranks: " + machine.name() + " has " +
                                std::to_string(machine.ranks()));
  CollectiveQuestion question{
      .settings = {.operation = {.collective = schedule::collective_named(query.collective), .peer = last_rank},
                   .era = query.era},
      .group = first_in_a_row(machine, query.ranks),
      .bytes = static_cast<double>(query.bytes),
      .interval = query.interval,
      .path = true,
      .links = true};
  if (!query.algorithm.empty()) question.config = algorithm_config_named(query.algorithm);
  const CollectiveAnswer answer = sim::answer(question, priced);
  const Price& price = answer.price;
  Simulation result{.seconds = in_seconds(price.time),
                    .low = in_seconds(answer.interval.low),
                    .high = in_seconds(answer.interval.high),
                    .algorithm = text_of(answer.config),
                    .algbw = price.algbw,
                    .busbw = price.busbw,
                    .least = in_seconds(price.bounds.most())};
  for (const Sensitivity& s : answer.interval.sensitivities) result.sensitive.push_back(s.figure);
  for (const CriticalPathShare& share : path_shares(price, machine))
    result.path.push_back({in_seconds(share.time), share.words});
  result.links = links_of(answer, machine);
  return result;
}

double workload_seconds(const std::string& workload, const std::string& machine) {
  return in_seconds(play(workload_of(read_graph("workload", workload)), Machine(typed_machine(machine))).time);
}

}  // namespace trellis
