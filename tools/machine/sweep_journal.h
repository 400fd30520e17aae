// Finished points of a sweep, kept in files as they come, so that the sweep can be resumed. Each rank that shares a
// sweep has its own file.
#pragma once

#include <string>
#include <vector>

#include "ccl/config.h"
#include "net/descriptor.h"
#include "sim/cluster/tune/sweep.h"

namespace trellis::tools {

class SweepJournal {
 public:
  // Rank 0 writes `path`, rank N writes path.N; empty: nothing is kept. Throws system_error.
  SweepJournal(std::string path, const sim::Machine&, const std::string& era, const ccl::LaunchedProcess&);

  std::vector<sim::ConfigCost> known(const sim::SweepSpec&) const;  // from the files of all ranks, as they are now
  std::vector<sim::ConfigCost> slower(
      const sim::SweepSpec&) const;  // the same for points given up early, each with a time that it exceeds
  void keep(const sim::SweepSpec&, const sim::ConfigCost&);
  void keep_slower(const sim::SweepSpec&, const sim::ConfigCost&);
  void join(const sim::SweepSpec&);  // copies into this rank's file what only other ranks' files have

 private:
  std::vector<std::string> paths() const;
  template <class Read>
  std::vector<sim::ConfigCost> all(const sim::SweepSpec&, const Read&) const;
  void append(const std::string& line);

  std::string path_, own_, fingerprint_;
  net::Descriptor file_;
};

// The sweep's costs. Algorithm configs are dealt to the ranks in turn. Rank 0, after its own, prices what the others
// have not finished, and returns all costs. Other ranks return nothing.
std::vector<sim::ConfigCost> shared_sweep(const sim::Machine&, const sim::SweepSpec&, sim::SweepControl, SweepJournal&,
                                          const ccl::LaunchedProcess&);

}  // namespace trellis::tools
