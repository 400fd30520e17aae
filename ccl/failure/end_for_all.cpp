#include "ccl/failure/end_for_all.h"

#include <fmt/format.h>

#include "device/device.h"

namespace trellis::ccl {

bool is_found_by_all(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const Mismatch&) {
    return false;
  } catch (const std::invalid_argument&) {
    return true;
  } catch (const device::Unsupported&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::optional<Rank> lost_rank(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const PeerLost& e) {
    return e.rank >= 0 ? std::optional(e.rank) : std::nullopt;
  } catch (...) {
    return std::nullopt;
  }
}

void end_for_all(Transport& t, const std::exception_ptr& why, bool elsewhere, MembershipNotice& notice) {
  notice.ended = MembershipNotice::Ended::failed;
  try {
    std::rethrow_exception(why);
  } catch (const PeerLost& e) {
    if (e.rank < 0) notice.ended = MembershipNotice::Ended::lost_outside;
    notice.reason = e.what();
  } catch (const Mismatch& e) {
    notice.ended = MembershipNotice::Ended::mismatch;
    notice.reason = e.what();
  } catch (const std::bad_alloc&) {
    notice.reason = "out of memory";
  } catch (const std::exception& e) {
    notice.reason = e.what();
  } catch (...) {
    notice.reason = "something was thrown that is no exception of ours";
  }
  if (elsewhere) {
    notice.ended = MembershipNotice::Ended::failed;
    notice.reason = fmt::format("another communicator that was used together with it failed: {}", notice.reason);
  }
  t.post(bytes_of(notice, t.ranks()));
  t.mark_aborted();
}

void finalize_for_all(Transport& t, MembershipNotice& notice) {
  notice.ended = MembershipNotice::Ended::finalized;
  t.post(bytes_of(notice, t.ranks()));
}

bool has_finalized(const Transport& t, Rank r) {
  return notice_in(t.posted(r), t.ranks()).ended == MembershipNotice::Ended::finalized;
}

}  // namespace trellis::ccl
