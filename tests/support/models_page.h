// docs/models.md: what is supported, asked of the registry, of the readers of checkpoints, of the program and of the
// lists that the tests take their models from.
#pragma once
#include <string>

namespace octet::testing {

// The page, the same on every machine.
std::string models_page();

}  // namespace octet::testing
