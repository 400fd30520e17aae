#include "ccl/transports/libfabric/transport.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "ccl/transports/libfabric/lanes/lane_receiver.h"
#include "ccl/transports/libfabric/lanes/lane_sender.h"
#include "ccl/transports/libfabric/presence/gossip_neighbours.h"
#include "ccl/transports/libfabric/presence/oversubscription.h"
#include "kernels/dispatch/cpu.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t posts_yields = 20;
constexpr auto between_checks = 10ms;
constexpr auto between_asks = 40ms;
constexpr auto longest_goodbye = 5s, longest_goodbye_after_failure = 1s;
constexpr auto longest_silence = 2s;  // of a peer for which a rank that leaves still waits after longest_goodbye

// The caller's memory, whose registration is kept until this is destroyed.
class KeptRegistered : public Exposed {
 public:
  KeptRegistered(const std::shared_ptr<DataPath>& path, const RegistrationCache::Range& range)
      : path_(path), range_(range) {
    const std::lock_guard lock(path->mutex());
    path->registrations().expose(range);
  }
  ~KeptRegistered() override {
    const auto path = path_.lock();
    if (!path) return;
    const std::lock_guard lock(path->mutex());
    path->registrations().end_exposed(range_);
  }
  std::size_t readable_bytes() const override { return range_.bytes; }

 private:
  const std::weak_ptr<DataPath> path_;
  const RegistrationCache::Range range_;
};

}  // namespace

FabricTransport::FabricTransport(JoinedFabric parts, std::uint32_t spins)
    : control_(std::move(parts.control)),
      presence_(std::move(parts.presence)),
      data_(std::move(parts.data)),
      timeout_(parts.timeout),
      spins_(ranks_outnumber_cores(presence_->roster()) ? 0 : spins) {
  presence_->set_progress([data = data_] {
    const std::unique_lock lock(data->mutex(), std::try_to_lock);
    if (lock.owns_lock()) data->progress();
  });
}

// Waits until everything sent to living peers has arrived; only then says that this rank has left, because peers do not
// wait for a rank that has left. Then waits until they have heard it, because they would otherwise take it for dead.
FabricTransport::~FabricTransport() {
  // Ignores failures: an operation has already reported them, or they matter to nobody any more.
  const auto attempt = [](auto&& part) {
    try {
      part();
    } catch (const std::exception&) {
    }
  };
  attempt([&] {
    presence_->lock().states().announce([](PublicState& s) { s.head.activity.running = false; });
    control_->wake();
    deliver();
  });
  attempt([&] {
    presence_->leave();
    control_->wake();
  });
  presence_->set_progress({});
  attempt([&] {
    const std::lock_guard lock(data_->mutex());
    data_->close();
  });
  const auto longest = over() ? longest_goodbye_after_failure : longest_goodbye;
  attempt([&] { control_->flush(*presence_, Clock::now() + std::min<std::chrono::milliseconds>(timeout_, longest)); });
  control_->retire(presence_);
}

// Waits for silent peers for a few seconds, and for those that answer until the timeout: it may take seconds until
// another rail is open in place of one that has stopped, and what was sent has arrived over it.
void FabricTransport::deliver() {
  const Deadline began = Clock::now();
  while (!over() && Clock::now() - began < timeout_) {
    {
      const Deadline now = Clock::now();
      const Deadline heard_since = now - began < longest_goodbye ? Deadline::min() : now - longest_silence;
      const std::lock_guard lock(data_->mutex());
      data_->progress();
      if (data_->closed() || data_->all_arrived(heard_since)) break;
    }
    control_->progress();
    usleep(200);
  }
}

SharedCaches FabricTransport::caches_here() const {
  SharedCaches caches{.bytes = kernels::cpu().l3_bytes, .ranks = 0};
  for (Rank r = 0; r < ranks(); ++r) caches.ranks += roster().here(r) ? 1 : 0;
  return caches;
}

std::size_t FabricTransport::memory_bytes() const {
  const std::lock_guard lock(data_->mutex());
  return data_->memory_bytes();
}

std::unique_ptr<Exposed> FabricTransport::expose(void* data, std::size_t bytes) {
  return std::make_unique<KeptRegistered>(data_, RegistrationCache::Range{static_cast<std::byte*>(data), bytes});
}

Sender& FabricTransport::sender(Rank to, int lane) {
  const std::lock_guard lock(data_->mutex());
  return data_->ends().sender(to, lane);
}

Receiver& FabricTransport::receiver(Rank from, int lane) {
  const std::lock_guard lock(data_->mutex());
  return data_->ends().receiver(from, lane);
}

bool FabricTransport::wait(std::uint32_t idle, std::chrono::microseconds most) {
  if (idle < spins_) return false;  // lane ends poll
  if (yielding_.goes_on(idle - spins_, Clock::now())) {
    sched_yield();
    return false;
  }
  sleep(std::min(most, longest_sleep_));
  const Deadline now = Clock::now();
  if (now - last_check_ < between_checks) return false;
  last_check_ = now;
  presence_->lock().heartbeats().ask_around(Clock::now(), between_asks);
  control_->progress();
  return true;
}

void FabricTransport::tell_note(std::span<const std::byte> note) {
  presence_->lock().states().announce([&](PublicState& s) { s.note.assign(note.begin(), note.end()); });
  control_->progress();
  control_->wake();
}

std::vector<std::byte> FabricTransport::note_of(Rank r) {
  std::vector<std::byte> note = presence_->lock().states().of(r).note;
  if (note.empty()) {
    presence_->lock().heartbeats().ask(r, Clock::now());
    control_->progress();
  }
  return note;
}

void FabricTransport::sleep(std::chrono::microseconds most) {
  int descriptor = Wire::none;
  {
    const std::lock_guard lock(data_->mutex());
    descriptor = data_->descriptor();
  }
  pollfd one = {.fd = descriptor, .events = POLLIN, .revents = 0};
  const timespec time = {.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(most).count()};
  if (descriptor >= 0)
    ppoll(&one, 1, &time, nullptr);
  else if (descriptor == Wire::none)
    usleep(100);
}

// Counts what has arrived at the peers from this rank, as they report it, and here from them: it increases while data
// move, even if this rank only waits.
std::uint64_t FabricTransport::arrivals() const {
  std::uint64_t all = 0;
  const auto p = presence_->lock();
  for (Rank r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    for (const RailCounts& counts : {p.states().of(r).head.arrived, p.states().arrivals(r)})
      all = std::accumulate(counts.begin(), counts.end(), all);
  }
  return all;
}

bool FabricTransport::could_advance() const {
  const std::lock_guard lock(data_->mutex());
  data_->progress();
  return data_->could_advance();
}

std::optional<std::uint32_t> FabricTransport::unread(Rank from, int lane) const {
  const std::lock_guard lock(data_->mutex());
  return data_->unread(from, lane);
}

void FabricTransport::withdraw() {
  const std::lock_guard lock(data_->mutex());
  data_->close();
}

void FabricTransport::show(const RankActivity& a) {
  presence_->lock().states().change([&](PublicState& s) {
    const RankActivity before = s.head.activity;
    s.head.activity = a;
    s.head.activity.elsewhere = before.elsewhere;
    s.head.activity.heartbeat_elsewhere = before.heartbeat_elsewhere;
    s.head.activity.moves_elsewhere = before.moves_elsewhere;
    s.head.activity.waits_elsewhere = before.waits_elsewhere;
  });
}

void FabricTransport::show_elsewhere(Rank place, const WaitProgress& news) {
  presence_->lock().states().change([&](PublicState& s) {
    RankActivity& a = s.head.activity;
    a.elsewhere = place;
    ++a.heartbeat_elsewhere;
    if (news.moved) ++a.moves_elsewhere;
    if (news.begun) ++a.waits_elsewhere;
  });
}

void FabricTransport::rest() {
  presence_->lock().states().change([](PublicState& s) { s.head.activity.running = false; });
}

void FabricTransport::mark_lost(Rank r) {
  presence_->lock().verdict().mark_lost(r, Clock::now());
  control_->progress();
  control_->wake();
}

void FabricTransport::mark_aborted() {
  aborted_here_.store(true, std::memory_order_relaxed);
  presence_->lock().verdict().mark_aborted();
  control_->progress();
  control_->wake();
}

// An answer with an older state may already be on its way, so requests are numbered.
std::uint32_t FabricTransport::ask(Rank r) {
  const auto p = presence_->lock();
  p.heartbeats().ask(r, Clock::now());
  return p.heartbeats().asked(r);
}

bool FabricTransport::answered(Rank r, std::uint32_t ask) const {
  const auto p = presence_->lock();
  return p.heartbeats().answered(r, ask) || p.states().left(r);
}

void FabricTransport::refresh(std::chrono::milliseconds most) {
  const Deadline end = Clock::now() + most;
  if (is_large(ranks())) return survey(end);
  std::vector<std::uint32_t> asks;
  for (Rank r = 0; r < ranks(); ++r) asks.push_back(left(r) ? 0 : ask(r));
  for (Rank r = 0; r < ranks();) {
    if (answered(r, asks[static_cast<std::size_t>(r)]) || !alive(r)) {
      ++r;
      continue;
    }
    if (Clock::now() > end) return;
    control_->progress();
    usleep(100);
  }
}

bool FabricTransport::stopped(Rank r) const { return r != rank() && roster().here(r) && process_stopped(process(r)); }

bool FabricTransport::answers(Rank r, std::chrono::milliseconds most) {
  const Deadline end = Clock::now() + most;
  for (const std::uint32_t number = ask(r); !answered(r, number); usleep(100)) {
    if (Clock::now() > end) return false;
    control_->progress();
  }
  return true;
}

// Ranks that can't answer, because all paths to them led through ranks that have left, are not waited for.
void FabricTransport::survey(Deadline end) {
  const std::uint32_t number = presence_->lock().heartbeats().begin_survey();
  control_->wake();
  Deadline looked = Clock::now();
  const auto surveyed = [&](Rank r) { return presence_->lock().heartbeats().surveyed(r, number); };
  const auto in_reach = [&] { return reached_from(rank(), ranks(), [&](Rank r) { return r != rank() && left(r); }); };
  std::vector<bool> reached = in_reach();
  for (Rank r = 0; r < ranks();) {
    if (surveyed(r) || !reached[static_cast<std::size_t>(r)] || !alive(r)) {
      ++r;
      continue;
    }
    const Deadline now = Clock::now();
    if (now > end) return;
    if (now - looked > between_checks) {
      looked = now;
      reached = in_reach();
    }
    control_->progress();
    usleep(100);
  }
}

void FabricTransport::post(std::span<const std::byte> bytes) {
  presence_->lock().states().publish([&](PublicState& s) {
    s.board.assign(bytes.begin(), bytes.end());
    ++s.head.posts;
  });
  control_->progress();
  control_->wake();
}

void FabricTransport::wait_for_posts(std::uint64_t than, std::uint32_t idle) {
  const auto sum = [&] {
    std::uint64_t posts = 0;
    for (Rank r = 0; r < ranks(); ++r) posts += this->posts(r);
    return posts;
  };
  presence_->lock().heartbeats().ask_around(Clock::now(), between_asks);
  control_->progress();
  if (sum() > than) return;
  if (idle < posts_yields)
    sched_yield();
  else
    usleep(300);
}

}  // namespace trellis::ccl::libfabric
