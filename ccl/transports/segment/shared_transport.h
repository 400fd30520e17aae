// The transport over a Segment, for threads of one process and for processes of one host.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ccl/transports/describe_rank.h"
#include "ccl/transports/process_handle.h"
#include "ccl/transports/segment/all_to_all_exchange.h"
#include "ccl/transports/segment/peer_memory_access.h"
#include "ccl/transports/segment/segment.h"
#include "ccl/transports/yield_budget.h"

namespace trellis::ccl {

// How long to spin and yield before sleeping: see Transport::wait.
struct SpinPolicy {
  std::uint32_t spins = 0;   // rounds of a few polls, with a CPU pause in between
  std::uint32_t yields = 0;  // then times to yield the core to another thread, for a while at most; then sleep
};
SpinPolicy patience_for(Rank ranks, int cores);  // for ranks that share this many cores

class SharedTransport : public Transport {
 public:
  SharedTransport(std::string_view name, Segment, Rank rank, std::unique_ptr<PeerMemoryAccess>);
  ~SharedTransport() override;

  Rank rank() const override { return rank_; }
  Rank ranks() const override { return segment_.shape().ranks; }
  int lanes() const override { return segment_.shape().lanes; }
  RankCores places() const override { return segment_.places(); }
  SharedCaches caches_here() const override { return {places().l3_bytes, ranks()}; }
  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) override { return reach_->expose(data, bytes); }
  std::size_t readable(const void* data, std::size_t bytes, std::size_t message) override {
    return reach_->readable((rank_ + 1) % ranks(), static_cast<const std::byte*>(data), bytes, message);
  }
  Sender& sender(Rank to, int lane) override;
  Receiver& receiver(Rank from, int lane) override;
  AllToAllExchange* rounds() const override { return &rounds_; }
  bool wait(std::uint32_t idle, std::chrono::microseconds most) override;
  bool could_advance() const override;
  std::optional<std::uint32_t> unread(Rank from, int lane) const override;
  void show(const RankActivity&) override;
  void rest() override;
  void show_elsewhere(Rank place, const WaitProgress&) override;
  RankActivity activity(Rank) const override;
  void refresh(std::chrono::milliseconds) override {}
  bool answers(Rank, std::chrono::milliseconds) override { return true; }
  bool alive(Rank) override;
  bool left(Rank r) const override { return segment_.area(r).left.load(std::memory_order_acquire) != 0; }
  bool stopped(Rank r) const override { return r != rank_ && process_stopped(process(r)); }
  void mark_lost(Rank) override;
  Rank lost() const override { return segment_.header().lost.load(std::memory_order_relaxed) - 1; }
  void withdraw() override;
  void mark_aborted() override;
  Rank aborted_by() const override { return segment_.header().aborted.load(std::memory_order_acquire) - 1; }
  bool aborted_here() const override { return aborted_here_.load(std::memory_order_relaxed); }
  bool over() const override {
    const SegmentHeader& h = segment_.header();
    return (h.lost.load(std::memory_order_relaxed) | h.aborted.load(std::memory_order_relaxed)) != 0;
  }
  std::int64_t process(Rank r) const override { return segment_.area(r).pid.load(std::memory_order_relaxed); }
  std::string host(Rank) const override { return ""; }
  void post(std::span<const std::byte>) override;
  std::vector<std::byte> posted(Rank r) const override { return segment_.posted(r); }
  std::uint32_t posts(Rank r) const override { return segment_.area(r).posts.load(std::memory_order_acquire); }
  void wait_for_posts(std::uint64_t than, std::uint32_t idle) override;
  std::string_view name() const override { return name_; }
  std::uint64_t identity() const override { return segment_.header().identity; }
  std::size_t memory_bytes() const override;

 private:
  class LaneSender;
  class LaneReceiver;
  void ring_all();

  std::string_view name_;
  Segment segment_;
  Rank rank_;
  std::unique_ptr<PeerMemoryAccess> reach_;
  mutable AllToAllExchange rounds_;
  std::atomic<bool> aborted_here_ = false;
  SpinPolicy patience_;
  YieldBudget yielding_;
  std::vector<std::unique_ptr<LaneSender>> senders_;      // by rank and lane; created at first use
  std::vector<std::unique_ptr<LaneReceiver>> receivers_;  // by rank and lane; created at first use
  mutable std::mutex used_;                               // guards the next two: another thread counts their memory
  std::vector<LaneSender*> used_senders_;
  std::vector<LaneReceiver*> used_receivers_;
};

}  // namespace trellis::ccl
