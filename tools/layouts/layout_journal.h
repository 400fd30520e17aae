// Layouts that were priced, kept in a file as they come, so that a search goes on where it ended.
#pragma once

#include <map>
#include <string>

#include "tools/layouts/layout_search.h"

namespace trellis::tools {

class LayoutJournal {
 public:
  // `path`: the file; empty: nothing is kept. `fingerprint`: of everything that a price depends on except the layout.
  // Throws invalid_argument if the file is no such journal, or one with another fingerprint.
  LayoutJournal(std::string path, const std::string& fingerprint);

  bool known(PricedLayout&) const;
  void keep(const PricedLayout&);

 private:
  void append(const std::string& line) const;

  std::string path_;
  std::map<std::string, PricedLayout> known_;  // by the layout's words
};

}  // namespace trellis::tools
