// A group of ranks and what they do together. Every rank of it makes the same calls in the same order.
//
// An operation runs on a stream; without one, in the calling thread, and is done when the call returns. What it throws
// comes out of the call or of Stream::synchronize(): PeerLost, Mismatch, Aborted, or invalid_argument for what is wrong
// by itself. After any of the first three, and all that a stream threw, only shrink(), abort() and error() are of use.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "ccl/config.h"
#include "ccl/exposed.h"
#include "ccl/store.h"
#include "device/device.h"
#include "schedule/schedule.h"

namespace trellis::ccl {

using schedule::Collective;

// avg divides the sum; scaled_sum multiplies this rank's contribution by the factor first.
struct ReduceOp {
  kernels::Reduction kind = kernels::Reduction::sum;
  double factor = 1;
};

// One operation, as all of the calls below put it. count is NCCL's: of the whole buffer for all_reduce, broadcast,
// reduce, send_recv and permute; of one rank's block for the others.
struct Call {
  Collective collective = Collective::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  kernels::DType type = kernels::DType::f32;
  ReduceOp op = {};
  Rank root = 0;                                  // send_recv: the sender
  Rank peer = 0;                                  // send_recv: the receiver
  std::vector<schedule::Pair> pairs = {};         // permute
  std::vector<std::size_t> counts = {};           // all_gather_v, reduce_scatter_v: by rank; all_to_all_v: to each rank
  std::vector<std::size_t> arriving_counts = {};  // all_to_all_v: from each rank
};

class Communicator {
 public:
  // Returns when all `ranks` have called it with stores that see each other. A store, or a prefix, is for one of these.
  static std::unique_ptr<Communicator> create(std::shared_ptr<Store>, Rank rank, Rank ranks, const Config& = {},
                                              std::shared_ptr<device::Device> = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Rank rank() const;
  Rank ranks() const;
  const Config& config() const;
  device::Device& device();
  std::string_view transport() const;

  void run(const Call&, device::Stream* = nullptr);
  // Along a schedule of the caller's, which every rank proves for itself first.
  void run(const Call&, const schedule::Schedule&, device::Stream* = nullptr);

  void all_reduce(const void* in, void* out, std::size_t count, kernels::DType, ReduceOp = {}, device::Stream* = {});
  void reduce_scatter(const void* in, void* out, std::size_t count, kernels::DType, ReduceOp = {},
                      device::Stream* = {});
  void all_gather(const void* in, void* out, std::size_t count, kernels::DType, device::Stream* = {});
  void broadcast(const void* in, void* out, std::size_t count, kernels::DType, Rank root, device::Stream* = {});
  void reduce(const void* in, void* out, std::size_t count, kernels::DType, ReduceOp, Rank root, device::Stream* = {});
  void gather(const void* in, void* out, std::size_t count, kernels::DType, Rank root, device::Stream* = {});
  void scatter(const void* in, void* out, std::size_t count, kernels::DType, Rank root, device::Stream* = {});
  void all_to_all(const void* in, void* out, std::size_t count, kernels::DType, device::Stream* = {});
  void barrier(device::Stream* = {});
  void send(const void* in, std::size_t count, kernels::DType, Rank to, device::Stream* = {});
  void recv(void* out, std::size_t count, kernels::DType, Rank from, device::Stream* = {});

  // Ranks that give the same color become a communicator, in the order of key and then of rank. No color: none, null.
  std::unique_ptr<Communicator> split(std::optional<int> color, int key);
  // Those that are left, without `excluded`; every one of them calls it, also after a failure.
  std::unique_ptr<Communicator> shrink(std::span<const Rank> excluded);
  // Lets peers read the caller's own memory where it lies; Device::share's rules hold. Goes before this does.
  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes);

  void abort();     // from any thread: what runs here or on other ranks ends with Aborted
  void finalize();  // waits for what was begun; throws when ranks have been in different calls and none could see it

  std::exception_ptr error() const;  // what ended it; null: it is well
  std::size_t memory_bytes() const;  // that this rank's share of it uses, with the most scratch that it has borrowed
  std::uint64_t operations() const;  // begun so far
  std::string dump() const;          // the last of them, as JSON: see `trellis doctor`

  std::string algorithm(const Call&) const;  // that a call would use: "ring*2"

  struct Inside;

 private:
  void run(const struct Point&, device::Stream*);
  explicit Communicator(std::unique_ptr<Inside>);
  std::unique_ptr<Inside> inside_;
};

// Between its making and end(), operations of this thread are only noted; end() runs all of them as one. Groups nest;
// the outermost counts.
class Group {
 public:
  Group();
  ~Group();  // without end(): forgets what was noted
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end();
  static bool open();  // in this thread

 private:
  friend class Communicator;
  template <class What>
  static void issue(Communicator::Inside&, What&&, device::Stream*);  // now, or when the group ends
  static void forget(const Communicator::Inside&);
  bool ended_ = false;
};

}  // namespace trellis::ccl
