#include "tools/train/run/plugins.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

#include "text/refuse.h"
#include "train/config/plugin_code.h"

namespace trellis::tools {

void add_plugins(CLI::App& app, std::vector<std::string>& plugins) {
  app.add_option("--plugin", plugins,
                 "A shared library whose models, update rules and schedules the configuration may name");
}

void load_plugins(const std::vector<std::string>& plugins) {
  for (const std::string& plugin : plugins) {
    if (!std::filesystem::exists(plugin)) text::refuse("--plugin {}: there is no such file", plugin);
    // An absolute path, as dlopen would look for a bare name among the system's libraries.
    if (dlopen(std::filesystem::absolute(plugin).c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
      text::refuse("--plugin {}: {}", plugin, dlerror());
    try {
      train::check_foreign_code();
    } catch (const std::invalid_argument& e) {
      text::refuse("--plugin {}: {}", plugin, e.what());
    }
  }
}

}  // namespace trellis::tools
