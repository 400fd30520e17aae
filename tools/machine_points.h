// A sweep's finished points, kept in files as they come, so that it can go on after an interruption; each rank that
// shares a sweep has a file of its own.
#pragma once

#include <string>
#include <vector>

#include "ccl/config.h"
#include "ccl/rendezvous/socket.h"
#include "sim/sweep.h"

namespace trellis::tools {

class Points {
 public:
  // Rank 0 writes `path`, rank N path.N; empty: nothing is kept. Throws system_error.
  Points(std::string path, const sim::Machine&, const std::string& era, const ccl::Launched&);

  std::vector<sim::Cost> known(const sim::Sweep&) const;   // from the files of all ranks, as they are now
  std::vector<sim::Cost> slower(const sim::Sweep&) const;  // likewise: points that were given up
  void keep(const sim::Sweep&, const sim::Cost&);
  void keep_slower(const sim::Sweep&, const sim::Cost&);
  void join(const sim::Sweep&);  // writes down here what only others have

 private:
  std::vector<std::string> paths() const;
  template <class Read>
  std::vector<sim::Cost> all(const sim::Sweep&, const Read&) const;
  void append(const std::string& line);

  std::string path_, own_, fingerprint_;
  ccl::Descriptor file_;
};

// The sweep's costs. Ranks take ways by turns; the first, done with its own, goes on with what the others have not
// finished, and returns them all. The others return nothing.
std::vector<sim::Cost> shared_sweep(const sim::Machine&, const sim::Sweep&, sim::SweepControl, Points&,
                                    const ccl::Launched&);

}  // namespace trellis::tools
