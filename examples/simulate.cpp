// Prices an all_reduce on 16 simulated chips, with all links and with one that is dead.
#include <trellis/simulate.h>

#include <cstdio>

int main() {
  for (const char* change : {"", "dead:0-4"}) {
    trellis::SimulationQuery query{.machine = "trn2.48xlarge", .bytes = 64 << 20, .algorithm = "kangaring"};
    if (*change != 0) query.what_if = {change};
    const trellis::Simulation s = trellis::simulate(query);
    std::printf("%-9s %.0f us, between %.0f and %.0f, by %s\n", change, s.seconds * 1e6, s.low * 1e6, s.high * 1e6,
                s.algorithm.c_str());
    std::printf("          %s, busy %.0f%% of the time\n", s.links.front().name.c_str(), 100 * s.links.front().busy);
  }
}
