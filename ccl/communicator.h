// A communicator: a group of ranks and their collectives. All its ranks make the same calls in the same order. A rank's
// threads may call it in turn, but not at the same time, except abort(), error(), memory_bytes(), dump() and last().
// An operation runs on a stream. Without one it runs in the calling thread and is complete when the call returns.
// Errors are thrown by the call or by Stream::synchronize(): PeerLost, Mismatch, Aborted, or invalid_argument for a bad
// argument. After any of the first three, or any error from a stream, only shrink(), abort() and error() are useful.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "ccl/call.h"
#include "ccl/config.h"
#include "ccl/exposed.h"
#include "ccl/span_calls.h"
#include "ccl/store.h"
#include "device/device.h"
#include "schedule/schedule.h"

namespace trellis::ccl {

// How an operation ran.
struct LastRun {
  bool native = false;          // the device did it by itself
  std::string not_native = "";  // why it did not, where the device has collectives
};

// The algorithm that a call would use, and what selects it where the configuration does not.
struct Selected {
  std::string algorithm;  // "ring channels=2"
  bool by_model = false;  // chosen by the model of the host; else by the selection table
  int cores = 0;          // cores of all ranks together, for which the table's rules are chosen; 0: not known
};

class Communicator : public SpanCalls<Communicator> {
 public:
  // The communicator of the job that `trellis launch`, torchrun, mpirun or srun started, configured by the environment;
  // without such a job, one of this process alone. All ranks must call it equally often. Throws what create throws, and
  // invalid_argument for a bad variable.
  static std::unique_ptr<Communicator> from_environment();
  // Returns when all `ranks` have called it with stores that see each other. Use a store, or a prefix, only once.
  static std::unique_ptr<Communicator> create(std::shared_ptr<Store>, Rank rank, Rank ranks, const Config& = {},
                                              std::shared_ptr<device::Device> = nullptr);
  ~Communicator();  // in a forked process it does nothing, and calls throw device::Forked
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Rank rank() const;
  Rank ranks() const;
  const Config& config() const;
  device::Device& device();
  std::string_view transport() const;

  void run(const Call&, device::Stream* = nullptr);
  // Runs a schedule that the caller supplies. Every rank proves it first.
  void run(const Call&, const schedule::Schedule&, device::Stream* = nullptr);

  // Over memory of any device. SpanCalls has the same over spans, and the collectives with uneven blocks.
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
  using SpanCalls::all_gather, SpanCalls::all_reduce, SpanCalls::all_to_all, SpanCalls::broadcast, SpanCalls::gather,
      SpanCalls::recv, SpanCalls::reduce, SpanCalls::reduce_scatter, SpanCalls::scatter, SpanCalls::send;

  // Ranks with the same color form a new communicator, ordered by key, then rank; without a color, a rank gets null.
  // Returns within the timeout. If it succeeds, it succeeds on all members, unless they die. A failed split ends this
  // communicator: use shrink().
  std::unique_ptr<Communicator> split(std::optional<int> color, int key);
  // The ranks not in `excluded` all call it with the same list, also after a failure, and form a new communicator.
  // Timeout and success are as for split. A failed shrink can be retried: it succeeds when all its ranks are in it at
  // the same time. A rank that was given up or left out gets a PeerLost that names itself; different lists are a
  // Mismatch.
  std::unique_ptr<Communicator> shrink(std::span<const Rank> excluded);
  // Lets peers read the caller's own memory directly; see Device::share. Destroy the result before the communicator.
  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes);

  void abort();                      // from any thread: operations here and on other ranks end with Aborted
  bool stopping() const;             // this rank aborted it, and an operation here has not ended yet
  void finalize();                   // waits for all operations; throws on mismatches that no rank could detect before
  std::exception_ptr error() const;  // what ended the communicator; null: no error
  std::size_t memory_bytes() const;  // used by this rank, including its peak of borrowed scratch
  std::uint64_t operations() const;  // collectives started so far
  std::string dump() const;          // the flight recorder's last operations, as JSON: see `trellis doctor`
  std::string algorithm(const Call&) const;
  Selected selected(const Call&) const;
  LastRun last() const;  // how this rank's last operation ran

  struct State;

 private:
  void run(const struct SendRecv&, device::Stream*);
  explicit Communicator(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace trellis::ccl

namespace trellis {
using ccl::Communicator;
}
