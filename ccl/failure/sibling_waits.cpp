#include "ccl/failure/sibling_waits.h"

#include <algorithm>
#include <numeric>

namespace trellis::ccl {
namespace {

std::vector<Rank> places_of(const Transport& t, const FamilyMember* parent, std::span<const Rank> in_parent) {
  std::vector<Rank> places(static_cast<std::size_t>(t.ranks()));
  std::iota(places.begin(), places.end(), 0);
  if (parent != nullptr) std::ranges::transform(in_parent, places.begin(), [&](Rank r) { return parent->place(r); });
  return places;
}

}  // namespace

FamilyMember::FamilyMember(Transport& t, const FamilyMember* parent, std::span<const Rank> in_parent)
    : family_(parent == nullptr ? std::make_shared<CommunicatorFamily>() : parent->family_),
      transport_(t),
      places_(places_of(t, parent, in_parent)) {
  const std::lock_guard lock(family_->mutex_);
  family_->members_.push_back(this);
}

FamilyMember::~FamilyMember() {
  rests();
  const std::lock_guard lock(family_->mutex_);
  std::erase(family_->members_, this);
}

Rank FamilyMember::rank_at(Rank place) const {
  const auto found = std::ranges::find(places_, place);
  return found == places_.end() ? -1 : static_cast<Rank>(found - places_.begin());
}

void FamilyMember::waits_for(Rank r, const WaitProgress& news) {
  if (r >= 0 && r < static_cast<Rank>(places_.size())) show(place(r), news);
}

void FamilyMember::show(Rank place, const WaitProgress& news) {
  shown_ = place >= 0;
  const std::lock_guard lock(family_->mutex_);
  for (const FamilyMember* m : family_->members_)
    if (m != this) m->transport_.show_elsewhere(place, news);
}

CommunicatorFamily::Outsider FamilyMember::outsider(Rank place, std::chrono::milliseconds patience) const {
  const std::lock_guard lock(family_->mutex_);
  for (const FamilyMember* m : family_->members_) {
    const Rank r = m->rank_at(place);
    if (m == this || r < 0) continue;
    CommunicatorFamily::Outsider o{.known = true, .stopped = m->transport_.stopped(r)};
    o.answers = !o.stopped && m->transport_.answers(r, patience);
    const RankActivity a = m->transport_.activity(r);
    o.occupied = a.waits_somewhere();
    if (a.running && a.waits_for >= 0 && a.waits_for < m->transport_.ranks()) o.waits.push_back(m->place(a.waits_for));
    if (a.elsewhere >= 0) o.waits.push_back(a.elsewhere);
    return o;
  }
  return {};
}

}  // namespace trellis::ccl
