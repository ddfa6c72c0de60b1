// How often the program has asked for memory, for the invariant no.alloc.in.step.
#pragma once
#include <cstdint>

namespace octet::testing {

// Allocations of all threads so far, in any build: through a replaced operator new, or under a sanitizer, which brings
// its own, through its hook.
std::int64_t allocation_count();

}  // namespace octet::testing
