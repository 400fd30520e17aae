#include "ccl/api/handles/grouping.h"

#include <optional>
#include <utility>

#include "ccl/api/c/group.h"
#include "ccl/group.h"

namespace trellis::ccl::api {
namespace {

struct Grouping {
  int depth = 0;
  std::unique_ptr<Group> operations = {};
  std::vector<AsyncJob> jobs = {};
  std::vector<std::shared_ptr<void>> kept = {};
  std::exception_ptr failed = {};
};

void take(const AsyncJob& job) {
  if (job.parent) job.parent->take();
  try {
    if (job.owner) job.owner->take();
  } catch (...) {
    if (job.parent) job.parent->end(nullptr);
    throw;
  }
}

void end(Comm* owner, Comm* parent, const std::exception_ptr& failed) {
  if (parent != nullptr) parent->end(owner == nullptr ? failed : nullptr);
  if (owner != nullptr) owner->end(failed);
}

std::exception_ptr do_now(Comm* owner, Comm* parent, const std::function<void()>& work) {
  std::exception_ptr failed;
  try {
    work();
  } catch (...) {
    failed = std::current_exception();
  }
  end(owner, parent, failed);
  return failed;
}

void do_beside(const AsyncJob& job) {
  // The object that owns the thread waits for it before it is destroyed, so the thread need only keep the other one
  // alive.
  Comm& place = job.owner ? *job.owner : *job.parent;
  place.do_beside([owner = job.owner.get(), parent = job.parent.get(), kept = job.owner ? job.parent : nullptr,
                   work = job.work] { do_now(owner, parent, work); });
}

void drop(const Grouping& g, const std::exception_ptr& because) {
  for (const AsyncJob& job : g.jobs) end(job.owner.get(), job.parent.get(), job.owner ? because : nullptr);
}

struct OfThread {
  Grouping open = {};
  ~OfThread() {
    if (!open.jobs.empty()) drop(open, std::make_exception_ptr(Usage("the thread ended before its group")));
  }
};

Grouping& grouping() {
  thread_local OfThread mine;
  return mine.open;
}

Grouping closed() {
  Grouping& g = grouping();
  if (g.depth == 0) throw Usage("no group is open in this thread");
  if (--g.depth != 0) return {.depth = g.depth};
  return std::exchange(g, Grouping{});
}

}  // namespace

void note_group_failure(const std::exception_ptr& failed) {
  Grouping& g = grouping();
  if (g.depth != 0 && !g.failed) g.failed = failed;
}

void keep_until_group_ends(std::shared_ptr<void> object) {
  Grouping& g = grouping();
  if (g.depth != 0 && object) g.kept.push_back(std::move(object));
}

trellis_result begin(AsyncJob job) {
  take(job);
  try {
    if (Grouping& g = grouping(); g.depth != 0) {
      g.jobs.push_back(std::move(job));
      return TRELLIS_OK;
    }
    if (job.background) {
      do_beside(job);
      return TRELLIS_IN_PROGRESS;
    }
  } catch (...) {
    end(job.owner.get(), job.parent.get(), std::current_exception());
    throw;
  }
  if (const auto failed = do_now(job.owner.get(), job.parent.get(), job.work)) std::rethrow_exception(failed);
  return TRELLIS_OK;
}

trellis_result do_all(const std::vector<AsyncJob>& jobs) {
  std::vector<std::exception_ptr> failed(jobs.size());
  bool background = false;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const AsyncJob& job = jobs[i];
      try {
        background |= job.background;
        if (job.background)
          do_beside(job);
        else
          threads.emplace_back([&job, &why = failed[i]] { why = do_now(job.owner.get(), job.parent.get(), job.work); });
      } catch (...) {  // no thread available
        failed[i] = std::current_exception();
        end(job.owner.get(), job.parent.get(), failed[i]);
      }
    }
  }
  for (const std::exception_ptr& why : failed)
    if (why) std::rethrow_exception(why);
  return background ? TRELLIS_IN_PROGRESS : TRELLIS_OK;
}

}  // namespace trellis::ccl::api

using namespace trellis::ccl::api;

trellis_result trellis_note_failure(trellis_result result, const char* text) {
  try {
    note_group_failure(std::make_exception_ptr(Told(result, text)));
  } catch (...) {  // no memory: the caller has the result all the same
  }
  return note_failure(result, text);
}

trellis_result trellis_group_start(void) {
  return guarded([] {
    Grouping& g = grouping();
    if (g.depth == 0) g.operations = std::make_unique<trellis::ccl::Group>();
    ++g.depth;
  });
}

trellis_result trellis_group_end(void) {
  return guarded([]() -> trellis_result {
    Grouping g = closed();
    if (g.depth != 0) return TRELLIS_OK;
    if (g.failed) {
      drop(g, g.failed);
      std::rethrow_exception(g.failed);
    }
    const trellis_result result = do_all(g.jobs);
    g.operations->end();
    return result;
  });
}

trellis_result trellis_group_forget(void) {
  return guarded([] {
    const Grouping g = closed();
    if (g.depth == 0) drop(g, std::make_exception_ptr(Usage("the group that was to make it was forgotten")));
  });
}
