#include "launch/launch_on_hosts.h"

#include <gtest/gtest.h>

#include "tests/folder.h"
#include "tests/why.h"

namespace trellis::launch {
namespace {

std::string text_of(const std::vector<HostSlots>& hosts) {
  std::string text;
  for (const HostSlots& h : hosts) text += h.host + ":" + std::to_string(h.slots) + " ";
  return text;
}

TEST(Hosts, AListHasThem) {
  EXPECT_EQ(text_of(hosts_in_list("node0")), "node0:0 ");
  EXPECT_EQ(text_of(hosts_in_list("a,me@b:4,10.0.0.7:12")), "a:0 me@b:4 10.0.0.7:12 ");
  EXPECT_EQ(text_of(hosts_in_list("fd00::2")), "fd00::2:0 ");
  EXPECT_EQ(bare_host("ec2-user@node0"), "node0");
  EXPECT_EQ(bare_host("node0"), "node0");
}

TEST(Hosts, WhatIsWrongInAListIsNamed) {
  for (const auto& [list, words] :
       std::vector<std::pair<std::string, std::string>>{{"", "no host"},
                                                        {"a,,b", "''"},
                                                        {"a:0", "'a:0'"},
                                                        {"a:4x", "1 to 65536 slots"},
                                                        {"a:99999999999", "'a:99999999999'"},
                                                        {"-oProxyCommand=x", "expected HOST"},
                                                        {"a;reboot", "expected HOST"},
                                                        {"a b", "expected HOST"},
                                                        {"a,b,a", "a is there twice"}}) {
    const std::string said = why([&, l = list] { hosts_in_list(l); });
    EXPECT_NE(said.find(words), std::string::npos) << list << ": " << said;
  }
}

TEST(Hosts, AFileHasThemInTheFormsOfMpi) {
  const Folder folder;
  const auto said = [&](const std::string& text) {
    return why([&] { hosts_in_file(folder.put("hosts", text).string()); });
  };
  const std::string file =
      folder.put("hosts", "# ours\n\nnode0\n  node1:4  \nnode2 slots=8 # with a word\r\nnode3\tslots=2\n");
  EXPECT_EQ(text_of(hosts_in_file(file)), "node0:0 node1:4 node2:8 node3:2 ");
  EXPECT_NE(said("node0\nnode1 slots=none\n").find(file + ":2: 'node1:none'"), std::string::npos);
  EXPECT_NE(said("# nobody\n").find("no host"), std::string::npos);
  EXPECT_NE(why([] { hosts_in_file("/nowhere/hosts"); }).find("/nowhere/hosts: the file with hosts can't be read"),
            std::string::npos);
}

TEST(Hosts, RanksAreAskedForOrToldBySlots) {
  EXPECT_EQ(ranks_of_hosts({{"a", 4}, {"b", 4}}, 0), 4);
  EXPECT_EQ(ranks_of_hosts({{"a", 4}, {"b", 2}}, 3), 3);
  EXPECT_NE(why([] { ranks_of_hosts({{"a", 4}, {"b", 2}}, 0); }).find("a has 4 slots and b has 2"), std::string::npos);
  EXPECT_NE(why([] { ranks_of_hosts({{"a", 4}, {"b", 0}}, 0); }).find("b has no slots"), std::string::npos);
}

}  // namespace
}  // namespace trellis::launch
