// The model of type Unigram in a tokenizer.json.
#pragma once
#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/tokenizer/unigram.h"

namespace octet::text {

// model: the object under "model". Errors name the path of the key.
Result<UnigramConfig> read_unigram(const Json& model);

}  // namespace octet::text
