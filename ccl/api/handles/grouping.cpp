#include "ccl/api/handles/grouping.h"

#include <algorithm>
#include <utility>

#include "ccl/api/c/group.h"
#include "ccl/errors.h"
#include "ccl/group.h"

namespace trellis::ccl::api {
namespace {

struct Grouping {
  int depth = 0;
  std::unique_ptr<Group> operations = {};
  std::vector<CommunicatorJob> jobs = {};
  std::vector<std::shared_ptr<void>> kept = {};
  std::vector<std::shared_ptr<Comm>> closing = {};  // communicators that the program destroyed within the group
  std::exception_ptr failed = {};
};

void take(const CommunicatorJob& job, Comm::Stage stage) {
  if (job.parent) job.parent->take(stage);
  try {
    if (job.owner) job.owner->take(stage);
  } catch (...) {
    if (job.parent) job.parent->end(nullptr);
    throw;
  }
}

void end(Comm* owner, Comm* parent, const std::exception_ptr& failed) {
  if (parent != nullptr) parent->end(owner == nullptr ? failed : nullptr);
  if (owner != nullptr) owner->end(failed);
}

// Runs the work, unless one of the communicators was aborted before. Returns the failure, or null.
std::exception_ptr do_now(Comm* owner, Comm* parent, const std::function<void()>& work) {
  std::exception_ptr failed;
  try {
    for (const Comm* const one : {owner, parent})
      if (one != nullptr && one->cancelled())
        throw Aborted("the communicator was aborted before what was asked of it in a group had begun");
    work();
  } catch (...) {
    failed = std::current_exception();
  }
  end(owner, parent, failed);
  return failed;
}

// Runs the job in a thread, which keeps both communicators alive. One of them owns the thread and joins it.
void do_beside(const CommunicatorJob& job) {
  Comm& place = job.owner ? *job.owner : *job.parent;
  place.do_beside(
      [owner = job.owner, parent = job.parent, work = job.work] { do_now(owner.get(), parent.get(), work); });
}

void drop(const Grouping& g, const std::exception_ptr& because) {
  for (const CommunicatorJob& job : g.jobs) end(job.owner.get(), job.parent.get(), job.owner ? because : nullptr);
}

// Closes the communicators that were destroyed within the group. Returns the first failure.
std::exception_ptr close_all(const Grouping& g) {
  std::vector<std::exception_ptr> failed(g.closing.size());
  {
    std::vector<std::jthread> threads;
    const auto close = [&](std::size_t i) {
      try {
        g.closing[i]->close();
      } catch (...) {
        failed[i] = std::current_exception();
      }
    };
    for (std::size_t i = 1; i < g.closing.size(); ++i) threads.emplace_back(close, i);
    if (!g.closing.empty()) close(0);
  }
  for (const std::exception_ptr& why : failed)
    if (why) return why;
  return nullptr;
}

struct OfThread {
  Grouping open = {};
  ~OfThread() {
    try {
      if (!open.jobs.empty()) drop(open, std::make_exception_ptr(UsageError("the thread ended before its group")));
    } catch (...) {  // no memory for the reason
      drop(open, std::current_exception());
    }
  }
};

Grouping& grouping() {
  thread_local OfThread mine;
  return mine.open;
}

Grouping closed() {
  Grouping& g = grouping();
  if (g.depth == 0) throw UsageError("no group is open in this thread");
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

bool close_when_group_ends(const std::shared_ptr<Comm>& comm) {
  Grouping& g = grouping();
  const auto is_it = [&](const auto& one) { return one == comm; };
  const bool held = std::ranges::any_of(g.kept, is_it) || std::ranges::any_of(g.jobs, [&](const CommunicatorJob& job) {
                      return job.owner == comm || job.parent == comm;
                    });
  if (g.depth == 0 || !held) return false;
  g.closing.push_back(comm);
  return true;
}

trellis_result begin(CommunicatorJob job) {
  take(job, grouping().depth != 0 ? Comm::Stage::recorded : Comm::Stage::running);
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

trellis_result do_all(const std::vector<CommunicatorJob>& jobs) {
  for (const CommunicatorJob& job : jobs)
    for (const auto& one : {job.owner, job.parent})
      if (one) one->start();
  std::vector<std::exception_ptr> failed(jobs.size());
  bool background = false;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const CommunicatorJob& job = jobs[i];
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
    note_group_failure(std::make_exception_ptr(ResultError(result, text)));
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
    trellis_result result = TRELLIS_OK;
    std::exception_ptr failed = g.failed;
    if (failed) {
      drop(g, failed);
      g.operations.reset();
    } else {
      try {
        result = do_all(g.jobs);
        g.operations->end();
      } catch (...) {
        failed = std::current_exception();
        g.operations.reset();
      }
    }
    const std::exception_ptr unclosed = close_all(g);
    if (failed) std::rethrow_exception(failed);
    if (unclosed) std::rethrow_exception(unclosed);
    return result;
  });
}

trellis_result trellis_group_forget(void) {
  return guarded([] {
    Grouping g = closed();
    if (g.depth != 0) return;
    drop(g, std::make_exception_ptr(UsageError("the group that was to make it was forgotten")));
    g.operations.reset();
    close_all(g);
  });
}
