// A fixed team of threads for loops inside one op. The caller is member 0; a job allocates nothing.
#pragma once
#include <atomic>
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

  // Calls body(member) once on every member and returns when all are done. One caller at a time; not from inside a
  // body.
  void run(FunctionRef<void(int member)> body);

  // Splits [0, count) into chunks of `grain` that members take as they become free: body(member, begin, end).
  void parallel_for(std::int64_t count, std::int64_t grain,
                    FunctionRef<void(int member, std::int64_t begin, std::int64_t end)> body);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  int size_;
};

}  // namespace octet
