// A fixed team of threads for loops inside one op. The caller is member 0; a job allocates nothing.
//
// Made for machines where others compute, too: nobody waits for a member that has not begun, since the others take its
// work; and a member that waits soon lets go of its core, so that one that lost its own can have it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "octet/base/function_ref.h"

namespace octet {

class ThreadTeam {
 public:
  // threads >= 1. Member i > 0 is bound to cores[i] where cores are given.
  explicit ThreadTeam(int threads, std::span<const int> cores = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Calls body(0) here, and body(member) once on every other member that gets to it before body(0) has returned;
  // returns when all calls have. So the calls must share the work out among themselves. One caller at a time; not from
  // inside a body.
  void share(FunctionRef<void(int member)> body);

  // Splits [0, count) into chunks of `grain` (at most 2^32) for body(member, begin, end). Each member has a share that
  // it takes in ascending order, so that memory is read in long runs, and then half of what another has left of its.
  void parallel_for(std::int64_t count, std::int64_t grain,
                    FunctionRef<void(int member, std::int64_t begin, std::int64_t end)> body);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  int size_;
};

}  // namespace octet
