// The transport over a Segment, whether its ranks are threads of one process or processes of one host.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ccl/transports/segment.h"

namespace trellis::ccl {

// How a receiver gets at what lies in a sender's own memory.
class Reach {
 public:
  struct Place {
    Carried carried;
    std::uint64_t where;
  };
  virtual ~Reach() = default;
  // Of these bytes of ours the first few: where a peer could read them, or no place when they had better be copied.
  struct Offer {
    std::optional<Place> place = {};
    std::size_t bytes = 0;
  };
  virtual Offer offer(Rank to, const std::byte* data, std::size_t bytes) = 0;
  virtual std::size_t readable(Rank by, const std::byte* data, std::size_t bytes, std::size_t message) = 0;
  virtual std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) = 0;
  virtual const std::byte* see(Rank from, const Place&, std::size_t bytes) = 0;  // null: only fetch() gets it
  virtual void fetch(Rank from, const Place&, std::size_t offset, std::byte* into, std::size_t bytes) = 0;
  virtual bool alive(Rank) = 0;
  virtual std::size_t memory_bytes() const = 0;  // this rank's share of the segment, as far as it is in use
};

// How long to wait in which way: see Transport::wait.
struct Patience {
  std::uint32_t spins = 0;   // times a few looks, with a core's pause between them
  std::uint32_t yields = 0;  // then times giving the core to another thread, then sleep
};
Patience patience_for(Rank ranks, int cores);  // of ranks that share so many cores

class SharedTransport : public Transport {
 public:
  SharedTransport(std::string_view name, Segment, Rank rank, std::unique_ptr<Reach>);
  ~SharedTransport() override;

  Rank rank() const override { return rank_; }
  Rank ranks() const override { return segment_.shape().ranks; }
  int lanes() const override { return segment_.shape().lanes; }
  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) override { return reach_->expose(data, bytes); }
  std::size_t readable(const void* data, std::size_t bytes, std::size_t message) override {
    return reach_->readable((rank_ + 1) % ranks(), static_cast<const std::byte*>(data), bytes, message);
  }
  Sender& sender(Rank to, int lane) override;
  Receiver& receiver(Rank from, int lane) override;
  bool wait(std::uint32_t idle) override;
  bool could_advance() const override;
  Rank unread() const override;
  void show(const Activity&) override;
  void rest() override;
  Activity activity(Rank) const override;
  bool alive(Rank) override;
  bool left(Rank r) const override { return segment_.area(r).left.load(std::memory_order_acquire) != 0; }
  void mark_lost(Rank) override;
  Rank lost() const override { return segment_.header().lost.load(std::memory_order_relaxed) - 1; }
  void withdraw() override;
  void mark_aborted() override;
  bool aborted() const override { return segment_.header().aborted.load(std::memory_order_relaxed) != 0; }
  std::vector<Note> exchange(std::span<const Rank> members, std::uint32_t round, const Note&, Deadline) override;
  std::string_view name() const override { return name_; }
  std::uint64_t identity() const override { return segment_.header().identity; }
  std::size_t memory_bytes() const override;

 private:
  class LaneSender;
  class LaneReceiver;
  void ring_all();
  void wait_for_round(std::span<const Rank> members, std::uint32_t round, Deadline);

  std::string_view name_;
  Segment segment_;
  Rank rank_;
  std::unique_ptr<Reach> reach_;
  Patience patience_;
  std::vector<std::unique_ptr<LaneSender>> senders_;      // by rank and lane; made when first used
  std::vector<std::unique_ptr<LaneReceiver>> receivers_;  // the same
  std::vector<LaneSender*> used_senders_;
  std::vector<LaneReceiver*> used_receivers_;
};

}  // namespace trellis::ccl
