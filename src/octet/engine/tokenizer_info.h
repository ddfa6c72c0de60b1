// What a replica can tell of its tokenizer.
#pragma once
#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/engine/replica.h"
#include "octet/formats/checkpoint.h"

namespace octet::engine {

// tokenizer_config.json beside the tokenizer that is used, without paths of its files; tokenizer_class and
// chat_template (a string, or a list of names and templates) are those in use. A GGUF file gives its special tokens in
// its place. Errors name the file.
Result<Json> describe_tokenizer(const ReplicaOptions& options, const formats::Checkpoint& checkpoint);

}  // namespace octet::engine
