#include "ccl/transports/join_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "ccl/rendezvous/forwarding_store.h"
#include "ccl/rendezvous/member_check.h"
#include "ccl/transports/open.h"
#include "text/number_parsing.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr auto for_its_word = 1s;  // how long to wait for the report of the failure that ended this rank's wait
constexpr const char* failure_note = "failure";

std::string process_note(Rank r) { return fmt::format("process/{}", r); }

std::span<const std::byte> bytes_in(const std::string& s) { return std::as_bytes(std::span(s)); }

std::optional<std::string> note_in(Store& store, const std::string& key, Deadline deadline) {
  try {
    return text_of(store.get(key, deadline));
  } catch (const TimedOut&) {
    return std::nullopt;
  }
}

// Cuts the first number off a text: "4711 0 text" becomes "0 text".
std::int64_t next_number(std::string_view& text) {
  const std::optional<std::int64_t> number = text::take_number<std::int64_t>(text);
  text.remove_prefix(std::min<std::size_t>(text.size(), 1));
  return number.value_or(-1);
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

enum class Failure : std::uint8_t {
  of_all,     // every rank finds the mistake by itself
  of_others,  // a wait ended in vain, or another rank has given up and not said why
  known,      // a rank is lost
  own,
};

Failure kind_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const std::invalid_argument&) {
    return Failure::of_all;
  } catch (const TimedOut&) {
    return Failure::of_others;
  } catch (const JoinAborted&) {
    return Failure::of_others;
  } catch (const PeerLost&) {
    return Failure::known;
  } catch (...) {
    return Failure::own;
  }
}

}  // namespace

JoinWatch::JoinWatch(std::shared_ptr<Store> store, Rank mine, Rank ranks, std::string host)
    : store_(std::move(store)), mine_(mine), host_(std::move(host)), ranks_(static_cast<std::size_t>(ranks)) {
  // A process that joins a second time is turned away; it must not report a failure of the first.
  if (ranks > 1 && store_->add(fmt::format("has process/{}", mine), 1) == 1)
    store_->set(process_note(mine), bytes_in(fmt::format("{} {}", getpid(), host_)));
}

std::shared_ptr<Store> JoinWatch::store() {
  return std::make_shared<PollingStore>(store_, false, [this] { check(); });
}

bool JoinWatch::has_come(Rank r) {
  Known& known = ranks_[static_cast<std::size_t>(r)];
  if (known.told) return true;
  const auto note = note_in(*store_, process_note(r), Clock::now());
  if (!note) return false;
  std::string_view rest = *note;
  const std::int64_t process = next_number(rest);
  known = {.told = true, .here = rest == host_};
  if (known.here && process > 0 && process != getpid()) known.process = ProcessHandle::of(static_cast<pid_t>(process));
  return true;
}

// Rank 0 checks all ranks and reports; the others check rank 0.
void JoinWatch::check() {
  const Deadline now = Clock::now();
  if (now < next_) return;
  next_ = now + PollingStore::interval;
  if (const auto why = told(now)) {
    heard_ = true;
    std::rethrow_exception(why);
  }
  for (Rank r = 0; r < (mine_ == 0 ? static_cast<Rank>(ranks_.size()) : 1); ++r)
    if (const Known& k = ranks_[static_cast<std::size_t>(r)];
        r != mine_ && has_come(r) && k.process != nullptr && !k.process->runs())
      throw PeerLost(r, -1, fmt::format("rank {}'s process has ended while the ranks joined", r));
}

void JoinWatch::check_joined(std::span<const Rank> missing, Deadline deadline) {
  check();
  if (Clock::now() > deadline && !missing.empty())
    throw PeerLost(missing.front(), -1, fmt::format("rank {} did not join in time", missing.front()));
}

// Reads a report: "3 1 text" says that rank 3 has lost rank 1; "3 -1 text", that rank 3 itself has failed.
std::exception_ptr JoinWatch::told(Deadline deadline) {
  const auto note = note_in(*store_, failure_note, deadline);
  if (!note) return nullptr;
  std::string_view rest = *note;
  const auto by = static_cast<Rank>(next_number(rest)), lost = static_cast<Rank>(next_number(rest));
  if (by < 0 || by >= static_cast<Rank>(ranks_.size()) || lost < -1 || lost >= static_cast<Rank>(ranks_.size()))
    return std::make_exception_ptr(
        std::invalid_argument(fmt::format("the store's note '{}' is damaged", failure_note)));
  if (by == mine_) return nullptr;
  if (lost < 0) return std::make_exception_ptr(PeerLost(by, -1, fmt::format("rank {} could not join: {}", by, rest)));
  return std::make_exception_ptr(PeerLost(lost, -1, fmt::format("{}, as rank {} found", rest, by)));
}

void JoinWatch::find_absent() {
  absent_.clear();
  for (Rank r = 0; r < static_cast<Rank>(ranks_.size()); ++r)
    if (r != mine_ && !has_come(r)) absent_.push_back(r);
}

void JoinWatch::tell(const std::exception_ptr& why) {
  std::string text;
  try {
    std::rethrow_exception(why);
  } catch (const PeerLost& e) {
    text = fmt::format("{} {} {}", mine_, e.rank, e.what());
  } catch (const std::exception& e) {
    text = fmt::format("{} -1 {}", mine_, e.what());
  }
  if (!note_in(*store_, failure_note, Clock::now())) store_->set(failure_note, bytes_in(text));
}

// Replaces an error that follows from missing ranks by one that names them, if that can be known.
std::exception_ptr JoinWatch::meaning_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const PeerLost& e) {
    if (absent_.size() < 2 || std::ranges::find(absent_, e.rank) == absent_.end()) return why;
    return std::make_exception_ptr(PeerLost(e.rank, -1, fmt::format("{} did not join in time", ranks_text(absent_))));
  } catch (const TimedOut&) {
    if (absent_.empty())
      return std::make_exception_ptr(
          PeerLost(0, -1, "rank 0, which gathers all ranks, has not said in time that all have joined"));
    return std::make_exception_ptr(
        PeerLost(absent_.front(), -1, fmt::format("{} did not join in time", ranks_text(absent_))));
  } catch (const JoinAborted& e) {
    return std::make_exception_ptr(PeerLost(-1, -1, e.what()));
  } catch (...) {
    return why;
  }
}

std::exception_ptr JoinWatch::failed(const std::exception_ptr& why) noexcept try {
  const Failure kind = kind_of(why);
  if (kind == Failure::of_all) return why;
  try {
    std::exception_ptr known = why;
    const bool others_know = kind == Failure::of_others;
    const Deadline word = Clock::now() + (others_know && mine_ != 0 ? for_its_word : 0s);
    if (const auto theirs = heard_ && !others_know ? nullptr : told(word)) {
      heard_ = true;
      if (others_know) known = theirs;
    }
    find_absent();
    if (!heard_) tell(known = meaning_of(why));
    refused_together(*store_, mine_);
    return known;
  } catch (const std::system_error& e) {  // the store is no longer there
    if (kind == Failure::known || mine_ == 0) return why;
    return std::make_exception_ptr(
        PeerLost(0, -1, fmt::format("rank 0's process has ended, or given up, while the ranks joined: {}", e.what())));
  }
} catch (...) {
  return why;
}

}  // namespace trellis::ccl
