#include "ccl/divide/split_or_shrink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "ccl/divide/missing_rank.h"
#include "ccl/failure/blame.h"
#include "ccl/failure/end_for_all.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using Call = MembershipNotice::Call;
using Stage = MembershipNotice::Stage;

constexpr auto between_checks = 5ms;  // for checks that take a system call for each rank
constexpr int looks_at_leader = 20;   // a millisecond apart

}  // namespace

// Store through which the leader passes one value to the members of a new communicator. No other store is needed.
class SplitOrShrink::Offers : public Store {
 public:
  explicit Offers(SplitOrShrink& of) : of_(of) {}
  void set(std::string_view, std::span<const std::byte> value) override {
    of_.notice_.offer.assign(value.begin(), value.end());
    of_.show(Stage::offers);
  }
  Bytes get(std::string_view, Deadline) override {
    return of_.seen_[static_cast<std::size_t>(of_.group_.front())].offer;
  }
  std::int64_t add(std::string_view key, std::int64_t) override {
    throw std::logic_error(fmt::format("an offer can't count '{}'", key));
  }

 private:
  SplitOrShrink& of_;
};

SplitOrShrink::SplitOrShrink(const ParentState& of, const JoinOptions& joining, Call call, std::vector<Rank> members,
                             ColorKey wish)
    : of_(of),
      joining_(joining),
      notice_(of.notice),
      transport_(of.transport),
      me_(of.transport.rank()),
      seen_(static_cast<std::size_t>(of.transport.ranks())),
      seen_posts_(seen_.size()),
      watch_(joining.config.timeout),
      began_(Clock::now()) {
  notice_.call = call;
  notice_.wish = wish;
  notice_.blames = -1;
  notice_.members = std::move(members);
  if (!splits()) group_ = notice_.members;
  begin(notice_.attempt + 1);
}

std::unique_ptr<Transport> SplitOrShrink::run() {
  try {
    std::unique_ptr<Transport> made = meet();
    end(-1);
    return made;
  } catch (...) {
    end_with(std::current_exception());
    throw;
  }
}

std::unique_ptr<Transport> SplitOrShrink::meet() {
  if (splits()) check_split();
  for (;;) {
    look();
    const SplitAction next = next_of(known());
    switch (next.what) {
      case SplitAction::What::wait:
        transport_.wait_for_posts(posts_seen(), idle_++);
        check([&] { return awaited(known()); });
        continue;
      case SplitAction::What::anew:
        begin(next.attempt);
        continue;
      case SplitAction::What::read:
        keep_wishes();
        continue;
      case SplitAction::What::part:
        if (notice_.wish.color < 0) return nullptr;
        group_ = group_of(me_, wishes_);
        continue;
      case SplitAction::What::fail:
        check_split();
        throw given_up(transport_, known(), failed_in(next.rank));
      case SplitAction::What::offer:
      case SplitAction::What::join:
        break;
    }
    if (auto made = join()) return made;
    if (splits()) await_who_failed();
    begin(notice_.attempt + 1);
  }
}

void SplitOrShrink::begin(std::uint32_t attempt) {
  notice_.attempt = attempt;
  notice_.offer.clear();
  show(Stage::here);
}

void SplitOrShrink::show(Stage stage) {
  notice_.stage = stage;
  seen_[static_cast<std::size_t>(me_)] = notice_;
  transport_.post(bytes_of(notice_, transport_.ranks()));
  idle_ = 0;
}

void SplitOrShrink::keep_wishes() {
  wishes_.clear();
  for (const MembershipNotice& n : seen_) wishes_.push_back(n.wish);
  show(Stage::read);
}

std::uint64_t SplitOrShrink::posts_seen() const {
  std::uint64_t sum = 0;
  for (const std::uint32_t posts : seen_posts_) sum += posts;
  return sum;
}

void SplitOrShrink::look() {
  for (Rank r = 0; r < transport_.ranks(); ++r) {
    std::uint32_t& seen = seen_posts_[static_cast<std::size_t>(r)];
    const std::uint32_t posts = transport_.posts(r);
    if (posts == seen) continue;
    seen = posts;
    if (r != me_) seen_[static_cast<std::size_t>(r)] = notice_in(transport_.posted(r), transport_.ranks());
  }
}

void SplitOrShrink::check(const std::function<std::vector<Rank>()>& missing) {
  const Deadline now = Clock::now();
  if (now < next_check_) return;
  next_check_ = now + between_checks;
  const auto away = away_for(now, watch_.absence(), began_);
  joining_.deadline += away;
  watch_.excuse(away);
  of_.meanwhile();
  std::vector<Rank> ranks = missing();
  beat(ranks.empty() ? -1 : ranks.front());
  if (splits()) check_split();
  watch_.look(transport_, now);
  const auto dead = std::ranges::find_if(ranks, [&](Rank r) { return !transport_.alive(r); });
  if (dead == ranks.end() && now <= joining_.deadline) return;
  const Rank lost = dead == ranks.end() ? -1 : *dead;
  look();  // a rank may have posted something, or aborted, just before it left or before the deadline
  if (splits()) check_split();
  ranks = missing();
  if (std::ranges::find(ranks, lost) != ranks.end()) lose(transport_, known(), lost, of_.ended);
  if (now <= joining_.deadline || ranks.empty()) return;
  watch_.look_now(transport_, Clock::now());
  const bool is_late = now > joining_.deadline + joining_.config.timeout / 2;
  miss({transport_, of_.family, watch_}, known(), ranks, of_.ended, is_late);
}

void SplitOrShrink::beat(Rank waits_for) {
  RankActivity mine = of_.activity;
  mine.heartbeat = ++of_.activity.heartbeat;
  mine.divides = static_cast<std::uint8_t>(notice_.call);
  mine.waits_for = waits_for;
  mine.running = true;
  transport_.show(mine);
  of_.family.waits_for(waits_for);
}

void SplitOrShrink::check_split() {
  if (transport_.aborted()) {
    const Rank by = transport_.aborted_by();
    look();
    if (transport_.aborted_here() || !has_finished(seen_[static_cast<std::size_t>(by)], notice_)) try {
        std::rethrow_exception(ended_by(transport_));
      } catch (const Aborted& aborted) {
        throw Aborted(fmt::format("{} while we were in a split", aborted.what()), by);
      }
  }
  if (const Rank lost = transport_.lost(); lost >= 0) {
    look();
    throw given_up(transport_, known(), lost);
  }
}

// A rank that fails marks the lost rank in the transport before its notice shows the failure. The mark is preferred,
// since the notice may be about another call by now.
Rank SplitOrShrink::failed_in(Rank r) const {
  if (const Rank lost = transport_.lost(); lost >= 0) return lost;
  const Rank blamed = seen_[static_cast<std::size_t>(r)].blames;
  return blamed < 0 ? r : blamed;
}

// Waits for the rank that gave up the communicator to show which rank it blames.
void SplitOrShrink::await_who_failed() {
  for (;; transport_.wait_for_posts(posts_seen(), idle_++)) {
    look();
    for (const Rank r : group_)
      if (seen_[static_cast<std::size_t>(r)].broken >= notice_.attempt) {
        check_split();
        throw given_up(transport_, known(), failed_in(r));
      }
    check([&] {
      std::vector<Rank> others;
      std::ranges::copy_if(group_, std::back_inserter(others), [&](Rank r) { return r != me_; });
      return others;
    });
  }
}

std::unique_ptr<Transport> SplitOrShrink::join() {
  JoinOptions joining = joining_;
  joining.rank = static_cast<Rank>(std::ranges::find(group_, me_) - group_.begin());
  joining.ranks = static_cast<Rank>(group_.size());
  joining.parent = &transport_;
  joining.group = group_;
  bool given_up_here = false;
  joining.waiting = [&](std::span<const Rank> in_group) {
    std::vector<Rank> missing;
    for (const Rank r : in_group) missing.push_back(group_[static_cast<std::size_t>(r)]);
    look();
    if (gone(known(), missing) >= 0) throw JoinAborted("a rank has turned to something else");
    try {
      check([&] { return missing; });
    } catch (...) {
      given_up_here = true;
      throw;
    }
  };
  const MembershipNotice offered = seen_[static_cast<std::size_t>(group_.front())];
  try {
    return open_transport(std::make_shared<Offers>(*this), joining);
  } catch (const JoinAborted&) {
    return nullptr;
  } catch (const PeerLost& lost) {  // names a rank of the group, unless joining.waiting threw it
    if (given_up_here || lost.rank < 0) throw;
    if (leader_is_gone(offered)) return nullptr;
    throw PeerLost(group_.at(static_cast<std::size_t>(lost.rank)), -1,
                   fmt::format("{}: in the new communicator, {}", word(notice_.call), lost.what()));
  } catch (const std::exception&) {
    if (given_up_here || !leader_is_gone(offered)) throw;
    return nullptr;
  }
}

// Whether the leader has withdrawn its offer or died. Looks several times, since its notice shows that a moment later.
bool SplitOrShrink::leader_is_gone(const MembershipNotice& offered) {
  const Rank leader = group_.front();
  for (int i = 0; leader != me_ && i < looks_at_leader; ++i, usleep(1000)) {
    look();
    if (seen_[static_cast<std::size_t>(leader)] != offered || !transport_.alive(leader)) return true;
  }
  return false;
}

// A failed split ends the communicator.
void SplitOrShrink::end_with(const std::exception_ptr& why) {
  const auto lost = lost_rank(why);
  if (!splits()) return end(lost.value_or(me_));
  if (lost) {
    transport_.mark_lost(*lost);
  } else if (!transport_.over()) {
    end_for_all(transport_, why, false, notice_);
  }
  end(lost.value_or(me_));
}

void SplitOrShrink::end(Rank blames) {
  notice_.blames = blames;
  notice_.offer.clear();
  if (splits() && blames >= 0 && notice_.broken == 0) notice_.broken = notice_.attempt;
  show(Stage::over);
  RankActivity mine = of_.activity;
  mine.heartbeat = ++of_.activity.heartbeat;
  mine.waits_for = -1;
  mine.running = false;
  transport_.show(mine);
  of_.family.rests();
}

}  // namespace trellis::ccl
