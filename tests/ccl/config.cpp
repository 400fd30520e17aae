#include "ccl/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ccl/api/trellis.h"
#include "ccl/job_identity.h"
#include "tests/why.h"

namespace trellis::ccl {
namespace {

using Variables = std::map<std::string, std::string>;

// While it lives, the environment consists of these variables.
class Surroundings {
 public:
  explicit Surroundings(const Variables& now) {
    for (char** v = environ; *v != nullptr; ++v) {
      const std::string entry = *v;
      before_.emplace(entry.substr(0, entry.find('=')), entry.substr(entry.find('=') + 1));
    }
    clearenv();
    for (const auto& [name, value] : now) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Surroundings() {
    clearenv();
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

 private:
  Variables before_;
};

LaunchedProcess launched(const Variables& v) {
  const Surroundings here(v);
  return launched_from_environment();
}

std::string complaint(const Variables& v, const auto& read) {
  const Surroundings here(v);
  return why(read);
}

TEST(Config, DefaultsWithoutVariables) {
  const Surroundings here(Variables{{"TRELLIS_TIMEOUT", ""}});
  const Config c = config_from_environment(), d;
  EXPECT_EQ(c.timeout, d.timeout);
  EXPECT_EQ(c.algorithm, "");
  EXPECT_EQ(c.machine, "host");
  EXPECT_FALSE(c.single_copy);
  EXPECT_TRUE(c.rounds);
  EXPECT_EQ(c.wire, kernels::DType::f32);
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(std::string(TRELLIS_SOURCE_DIR "/") + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The TRELLIS_ variables that a text names, except the secret's, which is not a setting.
std::set<std::string> variables_in(const std::string& text) {
  const std::regex name("TRELLIS_(?!SECRET)[A-Z_]+(?=[ :,;\"])");
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) found.insert(at->str());
  return found;
}

// The defaults by variable, as a C program would write them.
std::map<std::string, std::string> defaults() {
  const Surroundings here(Variables{});
  trellis_config c;
  EXPECT_EQ(trellis_config_from_environment(&c), TRELLIS_OK);
  const auto text = [](const char* value) { return fmt::format("\"{}\"", value == nullptr ? "" : value); };
  return {{"TRELLIS_TIMEOUT", fmt::format("{}", c.timeout_s)},
          {"TRELLIS_ALGORITHM", text(c.algorithm)},
          {"TRELLIS_SELECTIONS", text(c.selections)},
          {"TRELLIS_TRANSPORT", text(c.transport)},
          {"TRELLIS_ROUNDING", text(c.rounding)},
          {"TRELLIS_DUMP", text(c.dump)},
          {"TRELLIS_SEED", fmt::format("{}", c.seed)},
          {"TRELLIS_SINGLE_COPY", c.single_copy == TRELLIS_ON ? "TRELLIS_ON" : "TRELLIS_OFF"},
          {"TRELLIS_ROUNDS", c.rounds == TRELLIS_ON ? "TRELLIS_ON" : "TRELLIS_OFF"},
          {"TRELLIS_WIRE", c.wire == TRELLIS_F32 ? "TRELLIS_F32" : "TRELLIS_BF16"},
          {"TRELLIS_MACHINE", text(c.machine)}};
}

// The default that the header states for a variable is the one that the library uses.
TEST(Config, TheHeaderSaysTheDefaults) {
  const std::string header = text_of_file("ccl/api/c/config.h");
  const std::regex field(R"(;  *// (TRELLIS_[A-Z_]+) \(([^),]+)[^)]*\): )");
  std::map<std::string, std::string> said;
  for (std::sregex_iterator at(header.begin(), header.end(), field), end; at != end; ++at)
    said[at->str(1)] = at->str(2);
  EXPECT_EQ(said, defaults());
}

TEST(Config, EveryVariableThatIsReadIsDocumented) {
  const std::set<std::string> read = variables_in(text_of_file("ccl/config.cpp"));
  const std::string header = text_of_file("ccl/config.h");
  EXPECT_EQ(variables_in(header.substr(header.find("struct Config {"))).size(),
            defaults().size());  // without the fabric's, which C configs lack
  EXPECT_EQ(variables_in(header + text_of_file("ccl/process_device.h")), read);
}

// Variables of other libraries have an effect here where they mean the same. Settings that this library cannot follow
// are refused.
TEST(Config, VariablesOfOtherLibrariesForTheFabric) {
  const auto read = [](const Variables& variables) {
    const Surroundings here(variables);
    return config_from_environment().fabric;
  };
  EXPECT_EQ(read({{"NCCL_SOCKET_IFNAME", "^docker,lo"}}).sockets, "^docker,lo");
  EXPECT_EQ(read({{"NCCL_SOCKET_IFNAME", "eth1"}}).interface, "") << "it would keep EFA out";
  EXPECT_EQ(read({{"NCCL_SOCKET_IFNAME", "eth1"}, {"TRELLIS_INTERFACE", "eth2"}}).interface, "eth2");
  EXPECT_EQ(read({{"NCCL_HOSTID", "rack7"}}).host, "rack7");
  EXPECT_TRUE(read({{"OFI_NCCL_PROTOCOL", "SENDRECV"}}).tagged);
  EXPECT_FALSE(read({{"OFI_NCCL_PROTOCOL", "RDMA"}, {"NCCL_NET", "AWS Libfabric"}}).tagged);
  EXPECT_EQ(read({{"CCOM_SOCKET_IFNAME", "eth3"}}).sockets, "eth3");
  EXPECT_EQ(read({{"CCOM_SOCKET_IFNAME", "eth3"}, {"NCCL_SOCKET_IFNAME", "=eth1"}}).sockets, "=eth1");
  EXPECT_EQ(read({{"OFI_NCCL_EXCLUDE_TCP_IF", "lo,docker0"}}).not_over_tcp, "lo,docker0");
  EXPECT_EQ(read({{"OFI_NCCL_FORCE_PRODUCT_NAME", "trn1.32xlarge"}}).product, "trn1.32xlarge");
  EXPECT_EQ(read({{"OFI_NCCL_FORCE_NUM_RAILS", "2"}}).rails, 2);
  EXPECT_EQ(read({{"OFI_NCCL_FORCE_NUM_RAILS", "2"}, {"TRELLIS_RAILS", "3"}}).rails, 3);
  for (const char* wrong :
       {"NCCL_IB_HCA=mlx5_0", "NCCL_SOCKET_FAMILY=AF_INET6", "OFI_NCCL_FORCE_NUM_RAILS=8", "OFI_NCCL_PROTOCOL=PIGEON",
        "NCCL_NET=IB", "NCCL_NET_PLUGIN=libnccl-net-tcpx.so", "TRELLIS_RAILS=5", "TRELLIS_REGISTRATIONS=-1"}) {
    const std::string_view text = wrong;
    const std::size_t equals = text.find('=');
    EXPECT_THROW(read({{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))}}),
                 std::invalid_argument)
        << wrong;
  }
}

TEST(Config, PluginsOverLibfabricAreWhatThisIs) {
  for (const char* usual :
       {"ofi", "aws-ofi", "none", "libnccl-net-ofi.so", "/opt/amazon/ofi-nccl/lib/libnccl-net.so"}) {
    const Surroundings here(Variables{{"NCCL_NET_PLUGIN", usual}});
    EXPECT_NO_THROW(config_from_environment()) << usual;
  }
}

// The variables of other libraries that a text names in lines that begin with `before`.
std::set<std::string> foreign_in(const std::string& text, const std::string& before) {
  const std::regex name("(?:OFI_NCCL|NCCL|CCOM|NEURON_RT)_[A-Z_]+");
  std::set<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(before))
      for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) found.insert(at->str());
  return found;
}

TEST(Config, EveryVariableOfOtherLibrariesThatIsReadIsInTheTable) {
  std::set<std::string> read = foreign_in(text_of_file("ccl/config.cpp"), "  ");
  const std::set<std::string> told = foreign_in(text_of_file("ccl/README.md"), "| ");
  EXPECT_GT(read.size(), 10U);
  EXPECT_TRUE(std::ranges::includes(told, read));
}

// The README has a row for each ignored variable; setting it changes nothing.
TEST(Config, VariablesThatAreIgnored) {
  const std::string table = text_of_file("ccl/README.md");
  std::set<std::string> ignored;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    if (line.find("| ignored: ") != line.npos) ignored.merge(foreign_in(line, "| "));
  EXPECT_TRUE(ignored.contains("NCCL_TOPO_FILE"));
  Variables all;
  for (const std::string& name : ignored) all[name] = "what nobody reads";
  const Surroundings here(all);
  EXPECT_NO_THROW(config_from_environment());
}

TEST(Config, EveryVariableHasItsField) {
  const Surroundings here(Variables{{"TRELLIS_TIMEOUT", "0.5"},
                                    {"TRELLIS_ALGORITHM", "all_reduce=ring,broadcast=ring"},
                                    {"TRELLIS_SELECTIONS", "/tmp/table"},
                                    {"TRELLIS_MACHINE", "trn2.48xlarge"},
                                    {"TRELLIS_TRANSPORT", "loopback"},
                                    {"TRELLIS_ROUNDING", "stochastic"},
                                    {"TRELLIS_SEED", "18446744073709551615"},
                                    {"TRELLIS_WIRE", "bf16"},
                                    {"TRELLIS_DUMP", "/tmp/dumps"},
                                    {"TRELLIS_SINGLE_COPY", "1"},
                                    {"TRELLIS_ROUNDS", "0"},
                                    {"TRELLIS_PROVIDER", "tcp;ofi_rxm"},
                                    {"TRELLIS_INTERFACE", "eth0"},
                                    {"TRELLIS_HOST", "node1"},
                                    {"TRELLIS_TAGGED", "1"},
                                    {"TRELLIS_CHECKSUM", "1"},
                                    {"TRELLIS_RAILS", "3"},
                                    {"TRELLIS_REGISTRATIONS", "12"},
                                    {"TRELLIS_INSTANCE", "trn2.48xlarge"}});
  const Config c = config_from_environment();
  EXPECT_EQ(c.timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(c.algorithm, "all_reduce=ring,broadcast=ring");
  EXPECT_EQ(c.selections, "/tmp/table");
  EXPECT_EQ(c.machine, "trn2.48xlarge");
  EXPECT_EQ(c.transport, "loopback");
  EXPECT_EQ(c.rounding, kernels::Rounding::stochastic);
  EXPECT_EQ(c.seed, UINT64_MAX);
  EXPECT_EQ(c.wire, kernels::DType::bf16);
  EXPECT_EQ(c.dump, "/tmp/dumps");
  EXPECT_TRUE(c.single_copy);
  EXPECT_FALSE(c.rounds);
  EXPECT_EQ(c.fabric.provider, "tcp;ofi_rxm");
  EXPECT_EQ(c.fabric.interface, "eth0");
  EXPECT_EQ(c.fabric.host, "node1");
  EXPECT_TRUE(c.fabric.tagged);
  EXPECT_TRUE(c.fabric.checksum);
  EXPECT_EQ(c.fabric.rails, 3);
  EXPECT_EQ(c.fabric.registrations, 12);
  EXPECT_EQ(c.fabric.instance, "trn2.48xlarge");
}

TEST(Config, WhatMakesNoSenseIsNamedWithItsValue) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"TRELLIS_TIMEOUT", {"0", "-1", "soon", "1s", "nan", "inf", "1e99", " 1"}},
      {"TRELLIS_ALGORITHM", {"rings", "all_reduce=", "sum=ring", "ring,ring", "all_reduce=ring,", "barrier=ring"}},
      {"TRELLIS_MACHINE", {"two words", "**", "#1"}},
      {"TRELLIS_TRANSPORT", {"tcp", "Loopback"}},
      {"TRELLIS_ROUNDING", {"up"}},
      {"TRELLIS_SEED", {"-1", "18446744073709551616", "0x10"}},
      {"TRELLIS_WIRE", {"f16", "BF16", "1"}},
      {"TRELLIS_CHECKSUM", {"crc", "2"}},
      {"TRELLIS_SINGLE_COPY", {"yes", "2"}},
      {"TRELLIS_ROUNDS", {"on", "2"}}};
  for (const auto& [name, values] : bad)
    for (const std::string& value : values) {
      const std::string said = complaint({{name, value}}, config_from_environment);
      EXPECT_TRUE(said.starts_with(name + "=" + value + ": expected ")) << name << "=" << value << " gave: " << said;
    }
}

TEST(LaunchedProcess, NobodyIsOneRankAlone) {
  const LaunchedProcess l = launched({{"MASTER_ADDR", "left.over"}});
  EXPECT_EQ(l.rank, 0);
  EXPECT_EQ(l.ranks, 1);
  EXPECT_EQ(l.by, "");
  EXPECT_EQ(l.address, "");
}

TEST(LaunchedProcess, ByTorchrun) {
  const LaunchedProcess l = launched({{"RANK", "5"},
                                      {"WORLD_SIZE", "8"},
                                      {"LOCAL_RANK", "1"},
                                      {"LOCAL_WORLD_SIZE", "4"},
                                      {"MASTER_ADDR", "node0"},
                                      {"MASTER_PORT", "29500"},
                                      {"TORCHELASTIC_RUN_ID", "none"},
                                      {"TRELLIS_SECRET", "s"},
                                      {"OMPI_COMM_WORLD_RANK", "0"},
                                      {"OMPI_COMM_WORLD_SIZE", "1"}});
  EXPECT_EQ(l.rank, 5);
  EXPECT_EQ(l.ranks, 8);
  EXPECT_EQ(l.local_rank, 1);
  EXPECT_EQ(l.local_ranks, 4);
  EXPECT_EQ(l.address, "node0");
  EXPECT_EQ(l.port, 29500);
  EXPECT_EQ(l.secret, "s");
  EXPECT_EQ(l.by, "torchrun");
}

// torchrun counts restarts on each node for itself, and sets the count below a launch that counts none.
TEST(JobIdentity, IsTheSameWhateverCountsRestarts) {
  const auto identity = [](const Variables& variables) {
    const Surroundings now(variables);
    return job_identity_from_environment();
  };
  const std::string of_launch = identity({{"TRELLIS_SECRET", "s"}});
  EXPECT_EQ(of_launch.size(), 16U);
  EXPECT_EQ(identity({{"TRELLIS_SECRET", "s"}, {"TORCHELASTIC_RESTART_COUNT", "0"}}), of_launch);
  EXPECT_EQ(identity({{"TRELLIS_SECRET", "s"}, {"TORCHELASTIC_RESTART_COUNT", "1"}}), of_launch);
  EXPECT_NE(identity({{"TRELLIS_SECRET", "t"}}), of_launch);
  EXPECT_EQ(identity({}), "");
}

TEST(LaunchedProcess, ByOpenMpiAndMpich) {
  const LaunchedProcess open = launched({{"OMPI_COMM_WORLD_RANK", "3"},
                                         {"OMPI_COMM_WORLD_SIZE", "4"},
                                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                         {"PMIX_RANK", "3"},
                                         {"SLURM_PROCID", "0"},
                                         {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(open.rank * 100 + open.ranks * 10 + open.local_rank, 341);
  EXPECT_EQ(open.by, "mpirun");
  EXPECT_TRUE(open.pmix);
  const LaunchedProcess mpich =
      launched({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(mpich.rank * 100 + mpich.ranks * 10 + mpich.local_ranks, 122);
  EXPECT_EQ(mpich.by, "mpiexec");
  EXPECT_FALSE(mpich.pmix);
}

Variables slurm(const Variables& more) {
  Variables v = {{"SLURM_PROCID", "6"},     {"SLURM_NTASKS", "7"},
                 {"SLURM_LOCALID", "0"},    {"SLURM_STEP_ID", "2"},
                 {"SLURM_NODEID", "3"},     {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                 {"SLURM_JOB_ID", "12345"}, {"PMI_RANK", "6"},
                 {"PMI_SIZE", "7"},         {"SLURM_STEP_NODELIST", "gpu-[03-07,12],cpu1"}};
  for (const auto& [name, value] : more) v[name] = value;
  return v;
}

TEST(LaunchedProcess, BySlurm) {
  const LaunchedProcess l = launched(slurm({}));
  EXPECT_EQ(l.rank, 6);
  EXPECT_EQ(l.ranks, 7);
  EXPECT_EQ(l.local_ranks, 1);
  EXPECT_EQ(l.by, "srun");
  EXPECT_EQ(l.address, "gpu-03");
  EXPECT_GT(l.port, 1024);
  EXPECT_NE(l.port, launched(slurm({{"SLURM_STEP_ID", "3"}})).port) << "two steps at once do not meet";
  EXPECT_EQ(launched(slurm({{"SLURM_NODEID", "1"}, {"SLURM_LOCALID", "1"}})).local_ranks, 2);
  EXPECT_EQ(launched(slurm({{"PMIX_RANK", "6"}})).address, "") << "PMIx tells better";
  EXPECT_EQ(launched(slurm({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}})).address, "a");
  EXPECT_EQ(launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}).ranks, 1)
      << "a batch script is no step of srun";
}

TEST(LaunchedProcess, HalfOfItIsRefusedByName) {
  const std::vector<std::pair<Variables, std::string>> bad = {
      {{{"RANK", "0"}}, "RANK is set, but WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set, but RANK is not"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK=2: expected less than WORLD_SIZE=2"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK=-1: expected an integer from 0"},
      {{{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "RANK=x: expected an integer"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, "LOCAL_RANK is set, but LOCAL_WORLD_SIZE is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "3"}}, "LOCAL_WORLD_SIZE=3"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}, "MASTER_ADDR is set, but MASTER_PORT is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}, "MASTER_PORT is set, but MASTER_ADDR is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT=70000"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}}, "OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not"},
      {{{"PMI_SIZE", "2"}}, "PMI_SIZE is set, but PMI_RANK is not"},
      {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}, "SLURM_PROCID is set, but SLURM_NTASKS is not"},
      {slurm({{"SLURM_LOCALID", ""}}), "SLURM_LOCALID is not"},
      {slurm({{"SLURM_STEP_TASKS_PER_NODE", "2(x3"}}), "SLURM_STEP_TASKS_PER_NODE=2(x3"},
      {slurm({{"SLURM_NODEID", "9"}}), "SLURM_STEP_TASKS_PER_NODE=2(x3),1: expected tasks a node"}};
  for (const auto& [variables, words] : bad) {
    const std::string said = complaint(variables, launched_from_environment);
    EXPECT_NE(said.find(words), std::string::npos) << "expected: " << words << "\ngot: " << said;
  }
}

}  // namespace
}  // namespace trellis::ccl
