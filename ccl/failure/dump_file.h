// The flight recorder's dump file of one communicator on one rank. The first failure, or a signal that ends the
// process, fixes the moment that the file describes. Later events do not change it.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "ccl/failure/flight_recorder.h"
#include "ccl/transports/transport.h"

namespace trellis::ccl {

class DumpFile {
 public:
  // The folder is "" when no file is wanted.
  DumpFile(std::string folder, std::chrono::milliseconds timeout, Transport&, const FlightRecorder&);

  bool wanted() const { return !folder_.empty(); }
  void divided_from(const Transport& parent, std::span<const Rank> members);
  // Records what ended the communicator; only the first counts. `elsewhere`: the failure began on another communicator.
  void note(const std::exception_ptr&, bool elsewhere);

  // `pending`: the messages that a running operation waits for. Only its own thread can give them.
  void write(std::vector<PendingMessage> pending = {});
  std::string text() const;

  // Returns the failure. If the last file could not be written, the failure says why, once.
  std::exception_ptr told_of(const std::exception_ptr&);

  bool write_if_dividing();  // false: no split or shrink is in progress
  // Records the error that ended the last ScopedSplitRecord; does nothing if it succeeded.
  void division_failed(const std::exception_ptr&);

 private:
  friend class ScopedSplitRecord;
  struct Failure {
    FailureKind trouble = FailureKind::none;
    Rank blamed = -1;
    std::string text = {};
    std::uint64_t moment = 0;
  };
  Failure failure_of(const std::exception_ptr&, bool elsewhere) const;
  void decide(bool asked_for, std::vector<PendingMessage>&& = {});
  RankDump now() const;
  std::vector<PeerSnapshot> seen() const;
  void store();

  const std::string folder_;
  const std::chrono::milliseconds timeout_;
  Transport& transport_;
  const FlightRecorder& recorder_;

  mutable std::mutex mutex_;  // guards the members below, and the file
  std::string parent_ = {};
  std::vector<Rank> in_parent_ = {};
  std::optional<Failure> failure_ = {}, division_failure_ = {};
  bool dividing_ = false, division_lost_ = false, fixed_ = false;
  RankDump told_ = {};  // contents of the file
  std::uint64_t moment_ = 0;
  std::string trouble_ = {};  // why it could not be written
};

// While it lives, this rank is in a "split" or "shrink" of the communicator. Its start and end change the recorder; in
// between, any thread may write the dump.
class ScopedSplitRecord {
 public:
  ScopedSplitRecord(DumpFile&, FlightRecorder&, const char* what, std::uint64_t operation);
  ~ScopedSplitRecord();
  ScopedSplitRecord(const ScopedSplitRecord&) = delete;
  ScopedSplitRecord& operator=(const ScopedSplitRecord&) = delete;

 private:
  DumpFile& file_;
  FlightRecorder& recorder_;
  const int exceptions_;  // number of exceptions in flight at its start
};

// Replaces the file in one step: readers see the old file or the whole new one. Only its owner can read it. Throws
// system_error.
void replace_file(const std::string& path, const std::string& text);

// Writes the dump of a communicator whose creation failed, since nothing else records it. Returns the failure, which
// says why if the dump could not be written.
std::exception_ptr write_making_dump(const std::string& folder, Rank rank, Rank ranks, const std::exception_ptr&,
                                     const std::vector<Rank>& absent = {}) noexcept;
void remove_making_dump(const std::string& folder, Rank rank) noexcept;  // it was created after all

}  // namespace trellis::ccl
