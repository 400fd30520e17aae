// Streams and events: work that runs in order beside the caller, and points in it that others wait for.
#pragma once

#include <cstdint>
#include <functional>

namespace trellis::device {

using Time = std::int64_t;  // picoseconds; of the simulated machine where there is one, else of this process

Time wall_time();  // since an arbitrary moment

// A queue of work that runs in order, concurrently with the caller. Where a function takes a Stream*, null means: run
// now, in the calling thread.
class Stream {
 public:
  virtual ~Stream() = default;  // waits for the submitted work
  virtual void submit(std::function<void()> work) = 0;
  virtual bool idle() const = 0;
  // Waits for all work submitted so far. Throws the exception of the first piece of work that failed, once; work
  // submitted after that piece has not been done.
  virtual void synchronize() = 0;
  virtual bool failed() const = 0;                  // until synchronize() throws it; drops work meanwhile
  virtual Time now() const { return wall_time(); }  // the end of the work that is done
};

// A point in a stream's work that others can wait for.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(Stream*) = 0;
  virtual bool ready() const = 0;  // also true before the first record
  virtual void synchronize() = 0;
  virtual void wait(Stream*) = 0;          // work submitted to the stream from now on waits for the last record
  virtual Time time() const { return 0; }  // when the last record was reached; 0: it has not been
};

}  // namespace trellis::device
