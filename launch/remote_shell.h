// Runs a command line on a host by a remote shell, such as ssh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trellis::launch {

std::string shell_word(std::string_view);  // in quotes, so that a shell takes it as it is

// The program and its arguments. On this host it is `sh`; elsewhere `shell`, a program and its first arguments.
std::vector<std::string> words_on_host(const std::string& shell, const std::string& host, const std::string& command);
bool is_this_host(const std::string& host);  // by its name, or localhost

// Replaces a child process by the command; `who` begins the message if the program can't be run, which is status 127.
[[noreturn]] void become(std::vector<std::string> words, const char* who);
int exit_status(int status);  // of waitpid, as a shell has it: 128 and the number of the signal that killed it

// What the command prints. It reads nothing, and its errors go to ours. Throws invalid_argument that names the host
// when its status is not 0, and system_error.
std::string output_on_host(const std::string& shell, const std::string& host, const std::string& command);

}  // namespace trellis::launch
