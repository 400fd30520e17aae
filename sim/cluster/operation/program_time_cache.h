// Times of programs on disk: a file for each chip, set of figures and build of the library, a line for each program at
// a size. Many processes may read and write it at once.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

class ProgramTimeCache {
 public:
  static constexpr std::size_t most_times = 4096, most_files = 32;

  // Reads FOLDER/NAME.times if it is there. An empty folder: nothing is kept.
  ProgramTimeCache(std::filesystem::path folder, const std::string& name);

  std::optional<Time> find(const std::string& run) const;
  void add(const std::string& run, Time);
  // Writes what was added, together with what others have written since; the file is replaced as a whole. Drops times
  // beyond most_times, and removes the least recently used files of the folder. If the disk cannot be written, nothing
  // is kept, and the times must be computed again.
  void save();

  const std::string& damage() const { return damage_; }  // a sentence, if the file was damaged; else empty

 private:
  void read();

  std::filesystem::path folder_, path_;
  std::map<std::string, Time> times_, fresh_;
  std::string damage_;
};

// TRELLIS_CACHE/times, or else XDG_CACHE_HOME/trellis/times, or else HOME/.cache/trellis/times, by environment
// variables; empty: none of them is set.
std::filesystem::path times_folder();

}  // namespace trellis::sim
