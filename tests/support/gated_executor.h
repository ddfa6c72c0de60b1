// An executor whose steps end when they are allowed to. It says what a ScriptExecutor does.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <semaphore>
#include <string_view>
#include <utility>

#include "tests/support/byte_tokenizer.h"
#include "tests/support/script_executor.h"

namespace octet::testing {

class GatedExecutor final : public engine::Executor {
 public:
  struct Gate {
    std::counting_semaphore<> steps{0};  // that may end
    std::atomic<int> in_flight{0}, most_in_flight{0};
  };

  GatedExecutor(std::string_view script, std::int32_t slots, std::shared_ptr<Gate> gate)
      : inner_(bytes_of_text(script), slots), gate_(std::move(gate)) {}

  engine::Ticket submit(engine::StepPlan plan) override {
    const int now = ++gate_->in_flight;
    if (now > gate_->most_in_flight) gate_->most_in_flight = now;
    return inner_.submit(plan);
  }
  engine::StepResult collect(engine::Ticket ticket) override {
    gate_->steps.acquire();
    --gate_->in_flight;
    return inner_.collect(ticket);
  }
  void interrupt() override { gate_->steps.release(); }  // the engine ends, or a client left

 private:
  ScriptExecutor inner_;
  std::shared_ptr<Gate> gate_;
};

}  // namespace octet::testing
