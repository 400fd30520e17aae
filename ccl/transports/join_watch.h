// JoinWatch: while the ranks of a new communicator join, a rank that fails tells the others why, over the store. Rank 0
// also notices when the process of a rank on its host has ended, and the ranks there when rank 0's has. So no rank
// waits for one that will not come.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ccl/store.h"
#include "ccl/transports/process_handle.h"

namespace trellis::ccl {

class JoinWatch {
 public:
  // `host`: equal for ranks that see each other's processes.
  JoinWatch(std::shared_ptr<Store>, Rank mine, Rank ranks, std::string host);

  // The same store, whose waits end when check() throws.
  std::shared_ptr<Store> store();
  // Throws the failure that another rank has reported, or PeerLost for a rank whose process has ended. Looks at most
  // ten times a second.
  void check();
  void check_joined(std::span<const Rank> missing, Deadline);  // the same, and PeerLost at the deadline
  // Called when this rank fails: reports it to the others, unless it repeats their report, and returns what to throw.
  // Rank 0, whose process may hold the store, waits up to a second for the others to read the report.
  std::exception_ptr failed(const std::exception_ptr&) noexcept;
  const std::vector<Rank>& absent() const { return absent_; }  // the ranks that had not come when this one failed

 private:
  struct Known {
    bool told = false, here = false;  // its note in the store was read; it is on this host
    std::shared_ptr<ProcessHandle> process = nullptr;
  };
  std::exception_ptr told(Deadline);  // null: nobody has reported a failure
  std::exception_ptr meaning_of(const std::exception_ptr&);
  bool has_come(Rank);
  void find_absent();
  void tell(const std::exception_ptr&);

  const std::shared_ptr<Store> store_;
  const Rank mine_;
  const std::string host_;
  std::vector<Known> ranks_;
  std::vector<Rank> absent_;
  Deadline next_ = {};
  bool heard_ = false;  // check() has thrown a failure that another rank reported
};

}  // namespace trellis::ccl
