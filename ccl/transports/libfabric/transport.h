// The transport over libfabric.
#pragma once

#include "ccl/transports/libfabric/control/control_link.h"
#include "ccl/transports/libfabric/data/data_path.h"
#include "ccl/transports/open.h"
#include "ccl/transports/yield_budget.h"

namespace trellis::ccl::libfabric {

// What a rank has once all have joined over the fabric.
struct JoinedFabric {
  std::shared_ptr<ControlLink> control;
  std::shared_ptr<Presence> presence;
  std::unique_ptr<DataPath> data;
  std::chrono::milliseconds timeout = {};
};
JoinedFabric join_fabric(std::shared_ptr<Store>, const JoinOptions&);

class FabricTransport : public Transport {
 public:
  // `spins`: how often a rank that has a core to itself polls before it yields the core.
  explicit FabricTransport(JoinedFabric, std::uint32_t spins = 50);
  ~FabricTransport() override;

  Rank rank() const override { return roster().rank(); }
  Rank ranks() const override { return roster().ranks(); }
  std::string_view name() const override { return "libfabric"; }
  std::uint64_t identity() const override { return roster().identity(); }
  std::size_t memory_bytes() const override;
  SharedCaches caches_here() const override;  // as if all ranks on this host shared one L3 cache

  int lanes() const override { return channel_lanes + 1; }
  std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) override;
  std::size_t readable(const void*, std::size_t bytes, std::size_t) override { return bytes; }
  Sender& sender(Rank to, int lane) override;
  Receiver& receiver(Rank from, int lane) override;
  bool wait(std::uint32_t idle, std::chrono::microseconds most) override;
  std::uint64_t arrivals() const override;
  bool could_advance() const override;
  std::optional<std::uint32_t> unread(Rank from, int lane) const override;
  void withdraw() override;

  void show(const RankActivity&) override;
  void rest() override;
  void show_elsewhere(Rank place, const WaitProgress&) override;
  RankActivity activity(Rank r) const override { return presence_->lock().states().of(r).head.activity; }
  bool alive(Rank r) override { return presence_->lock().verdict().alive(r, Clock::now()); }
  std::chrono::milliseconds silence(Rank r) override { return presence_->lock().detector().silence(r, Clock::now()); }
  bool cut_off() override { return presence_->lock().detector().cut_off(Clock::now()); }
  bool left(Rank r) const override { return presence_->lock().states().left(r); }
  bool stopped(Rank) const override;
  void mark_lost(Rank) override;
  Rank lost() const override { return presence_->verdict().lost(); }
  Rank heard_by_others() const override { return presence_->verdict().heard_by_others(); }
  void mark_aborted() override;
  Rank aborted_by() const override { return presence_->verdict().aborted(); }
  bool aborted_here() const override { return aborted_here_.load(std::memory_order_relaxed); }
  bool over() const override { return presence_->verdict().over(); }
  std::int64_t process(Rank r) const override { return roster().member(r).process; }
  std::string host(Rank r) const override { return roster().host(r); }
  void refresh(std::chrono::milliseconds most) override;
  bool answers(Rank, std::chrono::milliseconds most) override;

  void post(std::span<const std::byte>) override;
  std::vector<std::byte> posted(Rank r) const override { return presence_->lock().states().of(r).board; }
  std::uint32_t posts(Rank r) const override { return presence_->lock().states().of(r).head.posts; }
  void wait_for_posts(std::uint64_t than, std::uint32_t idle) override;

  const std::shared_ptr<ControlLink>& control() const { return control_; }
  Presence& presence() const { return *presence_; }
  void tell_note(std::span<const std::byte>);
  std::vector<std::byte> note_of(Rank);

 protected:
  const Roster& roster() const { return presence_->roster(); }
  std::chrono::microseconds longest_sleep_ = std::chrono::milliseconds(1);  // in a wait

 private:
  void sleep(std::chrono::microseconds most);    // until something may have come
  void deliver();                                // waits until peers have what was sent to them
  std::uint32_t ask(Rank);                       // returns the request's number
  bool answered(Rank, std::uint32_t ask) const;  // it has answered, or can't any more
  void survey(Deadline);
  const std::shared_ptr<ControlLink> control_;
  const std::shared_ptr<Presence> presence_;
  const std::shared_ptr<DataPath> data_;
  const std::chrono::milliseconds timeout_;
  const std::uint32_t spins_;
  std::atomic<bool> aborted_here_ = false;
  YieldBudget yielding_;
  Deadline last_check_ = {};
};

}  // namespace trellis::ccl::libfabric
