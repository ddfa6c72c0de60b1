// What is put around the ids of a text: BOS, EOS.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/tokenizer.h"

namespace octet::text {

class PostProcessor {
 public:
  PostProcessor() = default;
  PostProcessor(std::vector<TokenId> before, std::vector<TokenId> after)
      : before_(std::move(before)), after_(std::move(after)) {}

  void apply(std::vector<TokenId>& ids) const {
    ids.insert(ids.begin(), before_.begin(), before_.end());
    ids.insert(ids.end(), after_.begin(), after_.end());
  }
  const std::vector<TokenId>& before() const { return before_; }
  const std::vector<TokenId>& after() const { return after_; }

 private:
  std::vector<TokenId> before_, after_;
};

// TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing, Sequence of these. Another type is an error that
// names it. path: for messages.
Result<PostProcessor> make_post_processor(const Json& json, std::string_view path);

}  // namespace octet::text
