#include "launch/node_coordinator.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ccl/rendezvous/environment.h"
#include "ccl/rendezvous/member_check.h"
#include "ccl/rendezvous/tcp/server.h"
#include "ccl/rendezvous/tcp/store_client.h"
#include "ccl/thread_without_signals.h"
#include "net/address.h"
#include "net/descriptor.h"
#include "net/sha256.h"
#include "text/refuse.h"

namespace trellis::launch {
namespace {

using namespace std::chrono_literals;
using ccl::Clock;
using ccl::Deadline;

constexpr auto join_patience = 300s;  // launches may be started one by one, by a person or a scheduler
constexpr auto beat = 200ms;
constexpr auto silence = 4s;            // without a word from it, a node is considered gone
constexpr auto request = 500ms;         // time for an answer; then it asks again over a fresh connection
constexpr auto refused_enough = 500ms;  // after refused connections for so long, node 0 has ended
constexpr auto pause_of_ours = 1s;      // so long between two rounds means that this process was paused, not others
constexpr std::int64_t done_beats = std::int64_t{1} << 40;  // added to a node's beats when it is done

std::string beats_of(int node) { return fmt::format("beats/{}", node); }

// "137 rank 5 was killed"
JobEnd end_in(const std::string& text) {
  const std::size_t space = text.find(' ');
  const int status = std::atoi(text.c_str());
  return {status == 0 ? 1 : status, space == std::string::npos ? text : text.substr(space + 1)};
}

}  // namespace

struct NodeCoordinator::Shared {
  int node = 0, nodes = 1, ranks = 1;
  ccl::StoreClientOptions search;
  std::unique_ptr<ccl::TcpStoreServer> server;  // node 0 has it
  net::Descriptor news = net::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::shared_ptr<ccl::Store> store;  // used by the thread alone, as are the members below

  struct Beats {
    std::int64_t count = 0;
    Deadline missed_at = Clock::now() + silence;
    bool missed = false;
  };
  std::vector<Beats> beats;
  bool told_end = false, told_done = false;
  Deadline looked = Clock::now(), answered = Clock::now(), refused = {};

  std::mutex mutex;  // guards the members below
  bool all_here = false, settled = false, done = false, leaving = false;
  JobEnd heard, to_tell;

  template <class Change>
  void change(Change change) {
    {
      const std::lock_guard lock(mutex);
      change();
    }
    const std::uint64_t one = 1;
    if (write(news.number(), &one, sizeof one) < 0) return;  // the counter is full, so the descriptor is readable
  }

  void tell();
  void listen();
  void look_after_others();
  void look_after_ourselves();
  void turn();
  void lose_node_0(const std::string& why);
};

// Sends a heartbeat; also, once each, that the job has ended, and that this node is done. The reason of the end is
// stored before the end is counted, so that listeners that see the count find the reason. If several nodes report an
// end at once, any of their reasons will do.
void NodeCoordinator::Shared::tell() {
  JobEnd end;
  bool is_done = false;
  {
    const std::lock_guard lock(mutex);
    end = to_tell;
    is_done = done;
  }
  if (end.status != 0 && !told_end) {
    if (store->add("ends", 0) == 0) store->set("end", net::bytes_of(fmt::format("{} {}", end.status, end.why)));
    store->add("ends", 1);
    told_end = true;
  }
  store->add(beats_of(node), is_done && !told_done ? done_beats : 1);
  told_done = told_done || is_done;
}

void NodeCoordinator::Shared::listen() {
  if (heard.status != 0 || store->add("ends", 0) == 0) return std::this_thread::sleep_for(beat);
  const JobEnd end = end_in(ccl::text_of(store->get("end", Clock::now() + request)));
  change([&] { heard = end; });
}

// Restarts all timeouts if this process was paused: it could not hear the other nodes meanwhile.
void NodeCoordinator::Shared::look_after_ourselves() {
  const Deadline now = Clock::now();
  if (now - std::exchange(looked, now) < pause_of_ours) return;
  answered = now;
  for (Beats& b : beats) b.missed_at = now + silence;
}

void NodeCoordinator::Shared::lose_node_0(const std::string& why) {
  change([&] {
    if (heard.status == 0) heard = {1, fmt::format("{} {}", search.name, why)};
    settled = true;
  });
}

// One round: sends a heartbeat, and reads what other nodes have reported. A request without an answer in time is
// repeated in the next round, over a fresh connection: one that was cut would stay silent.
void NodeCoordinator::Shared::turn() {
  try {
    tell();
    if (node == 0)
      look_after_others();
    else if (told_done)
      change([&] { settled = true; });
    listen();
    answered = Clock::now();
    refused = {};
  } catch (const ccl::TimedOut&) {
  } catch (const std::system_error& e) {
    if (node == 0) throw;
    if (e.code().value() == ECONNREFUSED && refused == Deadline()) refused = Clock::now();
    std::this_thread::sleep_for(beat);
  }
  look_after_ourselves();
  const Deadline now = Clock::now();
  if (refused != Deadline() && now - refused >= refused_enough) return lose_node_0("has ended");
  if (node != 0 && now - answered >= silence)
    lose_node_0(fmt::format("has not answered for {} s: it is stopped, or its host is not reached", silence.count()));
}

// Node 0's part: watches whether the others are alive, and whether all are done.
void NodeCoordinator::Shared::look_after_others() {
  bool all_done = true;
  for (int n = 1; n < nodes; ++n) {
    const std::int64_t count = store->add(beats_of(n), 0);
    Beats& seen = beats[static_cast<std::size_t>(n)];
    all_done = all_done && (count >= done_beats || seen.missed);
    if (count != seen.count) seen = {.count = count, .missed = seen.missed};
    if (count >= done_beats || seen.missed || Clock::now() < seen.missed_at) continue;
    seen.missed = true;
    change([&] {
      if (to_tell.status == 0)
        to_tell = {1,
                   fmt::format("the launch of node {} has not been heard for {} s: it has ended or is stopped, or its "
                               "host is not reached",
                               n, silence.count())};
    });
  }
  if (all_done && told_done) change([&] { settled = true; });
}

NodeCoordinator::NodeCoordinator(const LaunchOptions& job) : shared_(std::make_shared<Shared>()) {
  Shared& s = *shared_;
  s.node = job.node;
  s.nodes = job.nodes;
  s.ranks = job.ranks;
  s.beats.resize(static_cast<std::size_t>(job.nodes));
  const int port = job.port + ccl::ports_of_ranks;
  if (port > 65'535)
    text::refuse("--master-port {}: expected at most {}, as the launches of the nodes meet at the port {} after it",
                 job.port, 65'535 - ccl::ports_of_ranks, ccl::ports_of_ranks);
  s.search = {.places = net::addresses_of(job.address, port),
              .secret = "launch " + job.secret,
              .name = fmt::format("the launch of node 0 at {}:{}", job.address, port)};
  if (job.node == 0) {
    s.server = ccl::tcp_store_server({.address = ccl::listening_address(job.address),
                                      .port = port,
                                      .secret = s.search.secret,
                                      .on_refusal = ccl::told_on_stderr()});
  }
  ccl::thread_without_signals([shared = shared_] { run(shared); }).detach();
}

NodeCoordinator::~NodeCoordinator() {
  shared_->change([&] { shared_->leaving = true; });
}

void NodeCoordinator::meet(Shared& s) {
  const Deadline deadline = Clock::now() + join_patience;
  s.store = ccl::find_tcp_store(s.search, deadline);
  ccl::check_members(*s.store,
                     {.noun = "node",
                      .mine = s.node,
                      .members = s.nodes,
                      .terms = fmt::format("{} nodes with {} ranks each", s.nodes, s.ranks)},
                     deadline);
  s.change([&] { s.all_here = true; });
}

void NodeCoordinator::watch(Shared& s) {
  s.search.patience = request;
  s.store = ccl::find_tcp_store(s.search, Clock::now() + silence);
  s.looked = s.answered = Clock::now();
  for (Shared::Beats& b : s.beats) b.missed_at = s.looked + silence;
  for (bool leaving = false; !leaving;) {
    s.turn();
    const std::lock_guard lock(s.mutex);
    leaving = s.leaving || (s.settled && s.node != 0);
  }
}

// The thread shares ownership of the state, which may outlive the NodeCoordinator if a call to the store takes long.
void NodeCoordinator::run(const std::shared_ptr<Shared>& shared) {
  try {
    meet(*shared);
    watch(*shared);
  } catch (const std::exception& e) {
    shared->change([&] {
      if (shared->heard.status == 0) shared->heard = {1, e.what()};
      shared->settled = true;
    });
  }
}

int NodeCoordinator::news() const { return shared_->news.number(); }

void NodeCoordinator::heard() const {
  std::uint64_t times = 0;
  if (read(shared_->news.number(), &times, sizeof times) < 0) return;  // already acknowledged
}

bool NodeCoordinator::all_here() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->all_here;
}

JobEnd NodeCoordinator::ended() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->heard;
}

bool NodeCoordinator::settled() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->settled;
}

void NodeCoordinator::end(const JobEnd& end) {
  shared_->change([&] {
    if (shared_->to_tell.status == 0) shared_->to_tell = end;
  });
}

void NodeCoordinator::done() {
  shared_->change([&] { shared_->done = true; });
}

}  // namespace trellis::launch
