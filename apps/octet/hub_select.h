// Which files of a repository are fetched.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apps/octet/hub_listing.h"

namespace octet::hub {

// Shell patterns, * over folders too; a pattern that ends with / means all below. Empty include: everything.
struct Patterns {
  std::vector<std::string> include, exclude;
};
bool matches(const Patterns& patterns, const std::string& path);

// A GGUF repository holds one model in many types: the file whose name has this part ("Q4_K_M", in any case), or the
// files of a split one in order. Without a quant there must be one model only. Projectors and matrices of importance
// are no models. Errors list the choices.
Result<std::vector<std::string>> choose_gguf(const std::vector<std::string>& paths, const std::string& quant);

// What a server needs of a repository: configuration, tokenizer, templates, and weights once: safetensors, else GGUF,
// never pickled ones.
Result<std::vector<HubFile>> server_files(const Listing& listing, const std::string& quant);

// The same without the weights: for --tokenizer ORG/NAME.
bool is_text_side(const std::string& path);

}  // namespace octet::hub
