#include "octet/text/tokenizer/load_unigram.h"

#include <utility>

#include "octet/text/tokenizer/json_reader.h"

namespace octet::text {

Result<UnigramConfig> read_unigram(const Json& model) {
  // Sampling, of versions before and after.
  for (const char* key : {"alpha", "nbest_size"}) {
    if (member(model, key) != nullptr) return fail(ErrorCode::kUnsupported, "model.{}: is not supported", key);
  }
  UnigramConfig config;
  OCTET_TRY(const Json* const list, read_list(model, "vocab", "model"));
  config.pieces.reserve(list->size());
  for (const Json& item : *list) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number()) {
      return fail(ErrorCode::kInvalid, "model.vocab[{}]: must be a token and its score, not {}", config.pieces.size(),
                  dump_json(item).substr(0, 200));
    }
    config.pieces.push_back({.text = item[0].get<std::string>(), .score = item[1].get<double>()});
  }
  if (const Json* id = member(model, "unk_id")) {
    OCTET_TRY(config.unknown, read_id(*id, "model.unk_id"));
  }
  OCTET_TRY(config.byte_fallback, read_flag(model, "byte_fallback", false, "model"));
  return config;
}

}  // namespace octet::text
