// The mark that stands for a space: what the pre-tokenizer and the decoder of that name have in common.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/tokenizer/pre_tokenizer.h"

namespace octet::text {

struct MetaspaceOptions {
  std::string mark = "\u2581";
  PrependScheme scheme = PrependScheme::kAlways;
  bool split = true;
};

// The fields of a Metaspace object; those of old files (add_prefix_space, str_rep) too. Error: a value outside its
// range, or add_prefix_space at odds with prepend_scheme.
Result<MetaspaceOptions> read_metaspace_options(const Json& json, std::string_view path);
Result<std::unique_ptr<PreTokenizer>> read_metaspace(const Json& json, std::string_view path);

}  // namespace octet::text
