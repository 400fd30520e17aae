#include "ccl/failure/dump_file.h"

#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <random>
#include <utility>

#include "ccl/atomic_file.h"
#include "ccl/failure/dump_on_signal.h"
#include "ccl/failure/error_context.h"
#include "ccl/job_identity.h"
#include "ccl/timestamp_clock.h"
#include "ccl/transports/membership_notice.h"
#include "device/fork_safe_singleton.h"

namespace trellis::ccl {
namespace {

// One path per rank and process: a later attempt to create a communicator overwrites the file.
std::string making_path(const std::string& folder, Rank rank) {
  return fmt::format("{}/trellis_making_{}_rank{}.json", folder, getpid(), rank);
}

// Process ids are reused; these identities are not.
std::string process_identity() {
  return device::of_this_process([] {
    std::random_device random;
    return new std::string(fmt::format("{:08x}{:08x}", random(), random()));
  });
}

PeerSnapshot seen_of(const RankActivity& a) {
  const auto what = static_cast<Collective>(a.collective);
  const bool known = what <= Collective::barrier;
  PeerSnapshot seen{.last = {.operation = a.operation, .points = what == Collective::send_recv, .under_way = a.running},
                    .waits_for = a.waits_for};
  if (a.divides != 0) {
    seen.last.division = word(static_cast<MembershipNotice::Call>(a.divides));
    return seen;
  }
  if (known && (a.operation != 0 || seen.last.points))
    seen.last.call = call_text(what, a.count, name(static_cast<kernels::DType>(a.type)),
                               name(static_cast<kernels::Reduction>(a.reduction)), a.root, 0);
  return seen;
}

std::string unwritten(const std::exception& e) { return fmt::format("the dump could not be written: {}", e.what()); }

// Writes to standard error if that takes it at once: a process that was told to end does not wait for a reader.
void tell_at_once(const std::string& text) {
  pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&error, 1, 0) != 1 || error.revents != POLLOUT) return;
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

RankStatus standing_of(Transport& t, Rank r) {
  if (t.left(r)) return RankStatus::left;
  if (t.stopped(r)) return RankStatus::stopped;
  if (t.alive(r)) return RankStatus::alive;
  return t.silence(r).count() > 0 ? RankStatus::silent : RankStatus::ended;
}

}  // namespace

void replace_file(const std::string& path, const std::string& text) {
  AtomicFile file(path, unforeseen_draft(path), 0600);
  file.write(text.data(), text.size());
  file.finish();
}

DumpFile::DumpFile(std::string folder, std::chrono::milliseconds timeout, Transport& transport,
                   const FlightRecorder& recorder)
    : folder_(std::move(folder)), timeout_(timeout), transport_(transport), recorder_(recorder) {
  if (wanted()) std::filesystem::create_directories(folder_);  // now, while the program can still be told of an error
}

void DumpFile::divided_from(const Transport& parent, std::span<const Rank> members) {
  const std::lock_guard lock(mutex_);
  parent_ = fmt::format("{:016x}", parent.identity());
  in_parent_.assign(members.begin(), members.end());
}

DumpFile::Failure DumpFile::failure_of(const std::exception_ptr& thrown, bool elsewhere) const {
  Failure f{.trouble = FailureKind::own, .moment = TimestampClock::now()};
  try {
    std::rethrow_exception(thrown);
  } catch (const PeerLost& e) {
    f = {FailureKind::lost, e.rank, e.what(), f.moment};
  } catch (const Mismatch& e) {
    f = {FailureKind::mismatch, e.rank, e.what(), f.moment};
  } catch (const Aborted& e) {
    f = {e.by < 0 ? FailureKind::elsewhere : FailureKind::aborted, e.by, e.what(), f.moment};
  } catch (const std::exception& e) {
    f.text = e.what();
  } catch (...) {
    f.text = "something was thrown that is no exception of ours";
  }
  if (elsewhere) f.trouble = FailureKind::elsewhere, f.blamed = -1;
  if (f.blamed >= transport_.ranks()) f.blamed = -1;
  return f;
}

void DumpFile::note(const std::exception_ptr& thrown, bool elsewhere) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure_of(thrown, elsewhere);
}

std::vector<PeerSnapshot> DumpFile::seen() const {
  std::vector<PeerSnapshot> all;
  for (Rank r = 0; r < transport_.ranks(); ++r) {
    PeerSnapshot one = seen_of(transport_.activity(r));
    if (one.waits_for >= transport_.ranks()) one.waits_for = -1;  // a torn value: the rank died while it wrote it
    one.process = transport_.process(r);
    one.standing = standing_of(transport_, r);
    all.push_back(std::move(one));
  }
  return all;
}

RankDump DumpFile::now() const {
  RankDump d{.rank = transport_.rank(),
             .ranks = transport_.ranks(),
             .communicator = fmt::format("{:016x}", transport_.identity()),
             .parent = parent_,
             .in_parent = in_parent_,
             .process = getpid(),
             .process_identity = process_identity(),
             .job_identity = job_identity_from_environment()};
  const RankActivity mine = transport_.activity(d.rank);
  d.waits_for = mine.waits_for;
  d.step = mine.step;
  if (failure_) {
    d.trouble = failure_->trouble;
    d.blamed = failure_->blamed;
    d.error = failure_->text;
  }
  return d;
}

// A signal is handled some time after it arrived, and the rank may have gone on in the meantime. So the dump describes
// the moment of the arrival, if the recorder still has it.
void DumpFile::decide(bool asked_for, std::vector<PendingMessage>&& pending) {
  const DumpRequest asked = dump_request();
  std::uint64_t moment = failure_ ? failure_->moment : TimestampClock::now();
  const bool told_to_end = asked.signal != 0 && asked.moment <= moment;
  RankDump d = now();
  if (told_to_end) {
    d.signal = sigabbrev_np(asked.signal);
    d.trouble = FailureKind::none;
    d.blamed = -1;
    d.error = "";
  }
  if ((told_to_end || (asked_for && !failure_)) && asked.moment != 0 && recorder_.tells_of(asked.moment))
    moment = asked.moment;
  const std::optional<FlightRecorderEntry> last = recorder_.last_at(moment);
  const bool under_way = last && (last->ended == 0 || last->ended > moment);
  if (under_way && last->division == nullptr && last->ended == 0)
    d.pending = std::move(pending);
  else
    d.waits_for = d.step = -1;
  if (under_way && last->division != nullptr && division_failure_ && division_failure_->moment <= moment &&
      d.trouble == FailureKind::none) {
    d.trouble = division_failure_->trouble;
    d.blamed = division_failure_->blamed;
    d.error = division_failure_->text;
  }
  d.seen = seen();
  fixed_ = failure_ || !d.signal.empty();
  told_ = std::move(d);
  moment_ = moment;
}

void DumpFile::write(std::vector<PendingMessage> pending) {
  const std::lock_guard lock(mutex_);
  if (fixed_ || !wanted()) return;
  decide(true, std::move(pending));
  store();
}

// If the write fails while a failure is recorded, that failure reports it; after a request by a signal, it goes to
// standard error.
void DumpFile::store() {
  try {
    replace_file(fmt::format("{}/trellis_{}_rank{}.json", folder_, told_.communicator, told_.rank),
                 recorder_.dump(told_, moment_, timeout_));
    trouble_.clear();
  } catch (const std::exception& e) {
    trouble_ = unwritten(e);
    if (!failure_ && !division_failure_)
      tell_at_once(fmt::format("trellis: rank {}: {}\n", told_.rank, std::exchange(trouble_, {})));
  }
}

std::exception_ptr DumpFile::told_of(const std::exception_ptr& failure) {
  const std::lock_guard lock(mutex_);
  return trouble_.empty() ? failure : with_more(failure, std::exchange(trouble_, {}));
}

std::string DumpFile::text() const {
  const std::lock_guard lock(mutex_);
  return recorder_.dump(now(), TimestampClock::now(), timeout_);
}

ScopedSplitRecord::ScopedSplitRecord(DumpFile& file, FlightRecorder& recorder, const char* what,
                                     std::uint64_t operation)
    : file_(file), recorder_(recorder), exceptions_(std::uncaught_exceptions()) {
  const std::lock_guard lock(file_.mutex_);
  FlightRecorderEntry& r = recorder_.begin();
  r = {.operation = operation, .began = r.began, .division = what};
  recorder_.show();
  file_.division_failure_.reset();
  file_.division_lost_ = false;
  file_.dividing_ = true;
}

// A failed split or shrink stays in the recorder as running.
ScopedSplitRecord::~ScopedSplitRecord() {
  const std::lock_guard lock(file_.mutex_);
  file_.dividing_ = false;
  file_.division_lost_ = std::uncaught_exceptions() > exceptions_;
  if (!file_.division_lost_) recorder_.end();
}

void DumpFile::division_failed(const std::exception_ptr& thrown) {
  const std::lock_guard lock(mutex_);
  if (!division_lost_) return;
  division_failure_ = failure_of(thrown, false);
  if (!wanted()) return;
  if (fixed_)
    told_.later.push_back(division_failure_->text);
  else
    decide(false);
  store();
}

bool DumpFile::write_if_dividing() {
  const std::lock_guard lock(mutex_);
  if (!dividing_) return false;
  if (fixed_ || !wanted()) return true;
  decide(true);
  store();
  return true;
}

std::exception_ptr write_making_dump(const std::string& folder, Rank rank, Rank ranks, const std::exception_ptr& thrown,
                                     const std::vector<Rank>& absent) noexcept {
  if (folder.empty()) return thrown;
  try {
    RankDump d{.rank = rank,
               .ranks = ranks,
               .process = getpid(),
               .process_identity = process_identity(),
               .job_identity = job_identity_from_environment(),
               .trouble = FailureKind::own,
               .absent = absent};
    try {
      std::rethrow_exception(thrown);
    } catch (const PeerLost& e) {
      d.trouble = FailureKind::lost;
      d.blamed = e.rank < ranks ? e.rank : -1;
      d.error = e.what();
    } catch (const std::exception& e) {
      d.error = e.what();
    }
    std::filesystem::create_directories(folder);
    replace_file(making_path(folder, rank), FlightRecorder().dump(d, TimestampClock::now(), {}));
  } catch (const std::exception& e) {
    return with_more(thrown, unwritten(e));
  }
  return thrown;
}

void remove_making_dump(const std::string& folder, Rank rank) noexcept {
  std::error_code ignored;
  if (!folder.empty()) std::filesystem::remove(making_path(folder, rank), ignored);
}

}  // namespace trellis::ccl
