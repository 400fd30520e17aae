// Runs a group's operations, or a single operation on a stream, in the order of their communicators' tickets.
#pragma once

#include <memory>

#include "ccl/run/run_loop.h"

namespace trellis::ccl {

// Runs one communicator's operations in order and those of several communicators concurrently. Sends and receives are
// run first, all at once. Reusing it after clear() allocates nothing.
class OperationBatch {
 public:
  OperationBatch() = default;
  ~OperationBatch() { clear(); }
  OperationBatch(const OperationBatch&) = delete;
  OperationBatch& operator=(const OperationBatch&) = delete;

  void add(Communicator::State&, SendRecv&&, device::Stream*);
  void add(Communicator::State&, CheckedCall&&, device::Stream*);
  void forget(const Communicator::State*);
  bool empty() const { return send_recvs_.empty() && operations_.empty(); }
  const std::vector<device::Stream*>& streams() const { return streams_; }  // its streams, without null
  device::Device& device() const;

  // Takes a ticket of each communicator. Called at submission. Throws invalid_argument when a rank's sends to itself do
  // not match its receives.
  void take_turns();
  void hand_to_stream();  // from here on failures also end the communicators, since the caller may not see them
  void run();             // waits for the tickets and for the end of all operations
  void clear();           // gives back the tickets, used or not

 private:
  template <class What>
  struct Issued {
    Communicator::State* state = nullptr;
    What what = {};
  };
  // The operations of one communicator.
  struct Part : Strand {
    OperationBatch* batch = nullptr;
    std::shared_ptr<TicketLock> tickets = {};
    std::uint64_t turn = 0;
    std::size_t next = 0;         // index in operations_ of the next one
    bool has_met_points = false;  // sends and receives have been started, if there are any

    bool open_next();
    bool over() const { return has_met_points && next == batch->operations_.size() && !open; }
  };
  void use(device::Stream*);
  void take_turn(Communicator::State*);
  bool begin_next(Part&);
  void end_unbegun();  // on a stream: ends the communicators whose operations have not begun
  void end_dropped();  // the same if the stream drops all of them

  std::vector<Issued<SendRecv>> send_recvs_;
  std::vector<SendRecv> own_;  // buffer for those of send_recvs_ that a rank sends to itself
  std::vector<Issued<CheckedCall>> operations_;
  std::vector<device::Stream*> streams_;
  std::vector<Part> parts_;
  bool on_stream_ = false, awaited_ = false;  // it is to run on a stream; it has not run yet
};

}  // namespace trellis::ccl
