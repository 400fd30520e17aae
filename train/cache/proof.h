// Proves a configuration's step, or recalls the proof from a cache. To prove it, the step is laid out, its collectives
// and messages are matched across ranks, and its memory is counted.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "schedule/graph/peak_memory.h"
#include "train/config/config.h"

namespace trellis::train {

struct Proof {
  std::string fault;                             // empty: proved; or why not, or why the configuration does not fit
  std::vector<schedule::PeakMemory> peaks = {};  // on this machine, of one rank of each class, as classes_of()
  double seconds = 0;                            // how long making it took
  bool remembered = false;                       // it came from the cache
};

// Makes the proof without looking in a cache: lays out every stage.
Proof prove(const StepConfig&, Rank world);

// Proofs on disk: ROOT/VERSION/KEY/ with `proof`, and `plan`, the step as text. Failed ones are remembered too.
class ProofCache {
 public:
  explicit ProofCache(std::filesystem::path root);

  // Takes the proof from the cache, or makes and stores it. `again`: remakes a failed one. Ignores failures to store.
  Proof proof(const StepConfig&, Rank world, bool again = false) const;

  struct Entry {
    std::filesystem::path folder;
    std::string version, key, name;  // name: of the run for which it was made
    Rank ranks = 0;
    std::string fault;
    double age_days = 0;  // since it was last used
    std::uint64_t bytes = 0;
  };
  std::vector<Entry> entries() const;  // last used first
  // Removes proofs that were not used for so many days; returns how many it removed.
  std::size_t prune(double days) const;

 private:
  std::optional<Proof> find(const std::filesystem::path& folder, const std::string& canonical) const;
  std::filesystem::path root_;
};

std::string proof_key(const std::string& canonical);
std::string library_version();  // changes with every build of the library

}  // namespace trellis::train
