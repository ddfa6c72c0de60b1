// The table of architectures. Each has a file of its own, which registers three functions: config, weights, forward.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "octet/base/error.h"

namespace octet::formats {
struct ModelConfig;
}

namespace octet::models {

struct Pass;
class WeightPlan;

// A model's weights with its forward pass; the plan that declared them fills them.
class Network {
 public:
  virtual ~Network() = default;
  virtual bool forward(Pass& pass) const = 0;  // false when interrupted
};

struct Architecture {
  std::string_view name;  // Hugging Face class
  // Refuses what this architecture is not. Errors name the key of config.json.
  Result<> (*config)(const formats::ModelConfig& config) = nullptr;
  // Declares every weight and returns what will hold them.
  std::unique_ptr<Network> (*declare)(const formats::ModelConfig& config, WeightPlan& plan) = nullptr;
};

bool add_architecture(const Architecture& architecture);       // at start-up; true, to initialise a constant with
const Architecture* find_architecture(std::string_view name);  // null where there is none
std::vector<std::string_view> architecture_names();            // sorted

// The last line of an architecture's file, with its three functions:
//   Result<> config(const formats::ModelConfig& config);
//   void weights(const formats::ModelConfig& config, WeightPlan& plan, Weights& weights);
//   bool forward(Pass& pass, const Weights& weights);
template <typename Weights, auto config_function, auto weights_function, auto forward_function>
bool register_architecture(std::string_view name) {
  class Bound final : public Network {
   public:
    bool forward(Pass& pass) const override { return forward_function(pass, weights); }
    Weights weights;
  };
  return add_architecture(
      {.name = name,
       .config = config_function,
       .declare = [](const formats::ModelConfig& config, WeightPlan& plan) -> std::unique_ptr<Network> {
         auto network = std::make_unique<Bound>();
         weights_function(config, plan, network->weights);
         return network;
       }});
}

}  // namespace octet::models
