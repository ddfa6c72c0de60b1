// When an open loop sends: planned before the clock starts.
#pragma once
#include <cstdint>
#include <vector>

namespace octet::bench {

enum class RampUp : std::uint8_t { kNone, kLinear, kExponential };

struct ArrivalOptions {
  double rate = 0;        // per second; 0: all at once
  double burstiness = 1;  // shape of the gamma distribution of the gaps: 1 is a Poisson process, less is burstier
  std::uint64_t seed = 0;
  RampUp ramp_up = RampUp::kNone;
  double start_rate = 0, end_rate = 0;  // with a ramp-up, in place of rate
};

// Ascending, in nanoseconds from the start. Without a ramp-up the gaps are stretched so that the last request goes out
// when count / rate seconds are over, as vllm bench does.
std::vector<std::int64_t> arrival_times(std::int64_t count, const ArrivalOptions& options);

}  // namespace octet::bench
