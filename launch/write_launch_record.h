// The record that a launch writes beside the dumps of its ranks.
#pragma once

#include <string>

#include "ccl/diagnosis/launch_record.h"

namespace trellis::launch {

std::string dump_folder();   // the folder for dumps that the environment names; empty: none
std::int64_t nanoseconds();  // since 1970
std::string launch_record_path(const std::string& folder, int node);  // a path that no other launch uses
// Written whole or not at all. Throws system_error.
void write_launch_record(const std::string& path, const ccl::LaunchRecord&);

}  // namespace trellis::launch
