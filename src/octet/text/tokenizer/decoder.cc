#include "octet/text/tokenizer/decoder.h"

#include <utility>

#include "octet/base/utf8.h"
#include "octet/text/tokenizer/decoder_stage.h"
#include "octet/text/tokenizer/json_reader.h"
#include "octet/text/tokenizer/metaspace.h"

namespace octet::text {

class DecoderRun::Output final : public TokenSink {
 public:
  explicit Output(DecodeMode mode) : is_text_(mode != DecodeMode::kBytes) {}
  void part(std::string_view text) override {
    if (!is_text_ || is_valid_utf8(text)) {
      *out += text;
    } else {
      *out += repair_utf8(text);
    }
  }
  void end_token() override {}
  void finish() override {}

  std::string* out = nullptr;

 private:
  bool is_text_;
};

DecoderRun::DecoderRun() = default;
DecoderRun::DecoderRun(DecoderRun&&) noexcept = default;
DecoderRun::~DecoderRun() = default;

void DecoderRun::push(std::string_view token, std::string& out) {
  output_->out = &out;
  stages_->part(token);
  stages_->end_token();
}

void DecoderRun::finish(std::string& out) {
  output_->out = &out;
  stages_->finish();
}

DecoderRun Decoder::start(DecodeMode mode) const {
  DecoderRun run;
  auto output = std::make_unique<DecoderRun::Output>(mode);
  run.output_ = output.get();
  run.stages_ = before(std::move(output), mode);
  return run;
}

namespace {

class Fuse final : public DecoderStage {
 public:
  using DecoderStage::DecoderStage;
  void end_token() override { any_ = true; }
  void finish() override {
    if (std::exchange(any_, false)) next().end_token();
    next().finish();
  }

 private:
  bool any_ = false;
};

class Joining final : public DecoderStage {
 public:
  using DecoderStage::DecoderStage;
  void part(std::string_view text) override {
    if (std::exchange(between_, false)) next().part(" ");
    next().part(text);
  }
  void end_token() override { between_ = true; }

 private:
  bool between_ = false;
};

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}
  std::unique_ptr<TokenSink> before(std::unique_ptr<TokenSink> next, DecodeMode mode) const override {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) next = (*part)->before(std::move(next), mode);
    return next;
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

Result<std::unique_ptr<Decoder>> read_sequence(const Json& json, std::string_view path) {
  OCTET_TRY(const Json* const list, read_list(json, "decoders", path));
  std::vector<std::unique_ptr<Decoder>> parts;
  for (const Json& item : *list) {
    OCTET_TRY(auto part, make_decoder(item, fmt::format("{}.decoders[{}]", path, parts.size())));
    parts.push_back(std::move(part));
  }
  return make_decoder_sequence(std::move(parts));
}

Result<std::unique_ptr<Decoder>> read_replace(const Json& json, std::string_view path) {
  OCTET_TRY(TextPattern pattern, read_pattern(json, path));
  OCTET_TRY(std::string content, read_text(json, "content", path));
  if (!pattern.is_regex) return make_replace_decoder(std::move(pattern.text), std::move(content));
  auto made = make_regex_replace_decoder(pattern.text, std::move(content));
  if (!made) return within(fmt::format("{}.pattern", path), std::move(made).error());
  return made;
}

Result<std::size_t> read_count(const Json& json, std::string_view key, std::string_view path) {
  const Json* value = member(json, key);
  if (value == nullptr || !value->is_number_unsigned()) {
    return fail(ErrorCode::kInvalid, "{}.{}: must be an integer from 0", path, key);
  }
  return value->get<std::size_t>();
}

Result<std::unique_ptr<Decoder>> read_strip(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string content, read_character(json, "content", path));
  OCTET_TRY(const std::size_t start, read_count(json, "start", path));
  OCTET_TRY(const std::size_t stop, read_count(json, "stop", path));
  return make_strip_decoder(code_point_at(content, 0).value, start, stop);
}

}  // namespace

std::unique_ptr<Decoder> make_fuse_decoder() {
  return decoder_of([](auto next, DecodeMode) { return std::make_unique<Fuse>(std::move(next)); });
}

std::unique_ptr<Decoder> make_joining_decoder() {
  return decoder_of([](auto next, DecodeMode) { return std::make_unique<Joining>(std::move(next)); });
}

std::unique_ptr<Decoder> make_decoder_sequence(std::vector<std::unique_ptr<Decoder>> parts) {
  return std::make_unique<SequenceDecoder>(std::move(parts));
}

Result<std::unique_ptr<Decoder>> make_decoder(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string type, read_type(json, path));
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "Fuse") return make_fuse_decoder();
  if (type == "Replace") return read_replace(json, path);
  if (type == "Strip") return read_strip(json, path);
  if (type == "Sequence") return read_sequence(json, path);
  if (type == "Metaspace") {
    OCTET_TRY(MetaspaceOptions options, read_metaspace_options(json, path));
    return make_metaspace_decoder(std::move(options.mark), options.scheme);
  }
  return fail(ErrorCode::kUnsupported, "{}.type: \"{}\" is not supported", path, type);
}

}  // namespace octet::text
