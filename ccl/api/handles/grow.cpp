#include <array>
#include <cstring>

#include "ccl/api/handles/create_communicator.h"
#include "ccl/api/handles/grouping.h"
#include "text/refuse.h"

using namespace trellis::ccl::api;
using trellis::ccl::Communicator;

namespace {

// Sends one rank's id to every rank: sums the bytes, which are zero on all other ranks.
trellis_unique_id id_among(Communicator& communicator, const std::optional<trellis_unique_id>& mine) {
  std::array<unsigned char, sizeof(trellis_unique_id) + 1> said = {};
  if (mine) {
    std::memcpy(said.data(), mine->bytes, sizeof mine->bytes);
    said.back() = 1;
  }
  communicator.all_reduce(said.data(), said.data(), said.size(), trellis::kernels::DType::u8);
  if (said.back() != 1) trellis::text::refuse("grow: {} of the ranks gave an id, expected one", said.back());
  trellis_unique_id id;
  std::memcpy(id.bytes, said.data(), sizeof id.bytes);
  return id;
}

trellis_result grow_with_new_rank(int ranks, const trellis_unique_id* id, int rank, const trellis_config* config,
                                  trellis_comm* child) {
  require(id, "id");
  return trellis_comm_create(child, ranks, id, rank, config);
}

}  // namespace

trellis_result trellis_comm_grow(trellis_comm comm, int ranks, const trellis_unique_id* id, int rank,
                                 const trellis_config* config, trellis_comm* child) {
  return issued([&] {
    require(child, "child");
    *child = nullptr;
    if (comm == nullptr) return grow_with_new_rank(ranks, id, rank, config, child);
    const std::shared_ptr<Comm> parent = comms().use(comm).share();
    const Communicator& communicator = parent->ready();
    if (rank != -1) trellis::text::refuse("grow: rank {}: expected -1 from a rank that is a member", rank);
    if (ranks <= communicator.ranks())
      trellis::text::refuse("grow: {} ranks: expected more than {}", ranks, communicator.ranks());
    const bool background = nonblocking_child(config, parent->nonblocking());
    const auto work = [p = parent.get(), ranks, mine = id == nullptr ? std::nullopt : std::optional(*id)](Comm& made) {
      Communicator& from = p->inside_job();
      join(made, rendezvous_by(id_among(from, mine)), from.rank(), ranks, from.config());
    };
    return begin_for(child, background, work, parent);
  });
}
