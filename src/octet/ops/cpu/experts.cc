#include "octet/ops/cpu/experts.h"

#include <algorithm>
#include <cstring>

#include "octet/base/check.h"
#include "octet/ops/cpu/expert_plan.h"
#include "octet/ops/cpu/panel_product.h"

namespace octet::ops::cpu {
namespace {

constexpr std::int64_t kPassBytes = std::int64_t{128} << 20;  // of inputs and activations of a pass
constexpr std::int64_t kPanelPair = 2;                        // panels that fill a block of activations
constexpr std::int64_t kTilePanels = 16;                      // most panels between two looks at the activation
constexpr std::int64_t kUnitPanels = kRunPanels;              // fewest that a thread takes
constexpr std::int64_t kTileRows = kUnitPanels * kRowChunk;   // rows times panels of a tile
static_assert(kPanelPair * kPanel == kBlock && kUnitPanels % kPanelPair == 0);

const PackedLinear& packed(const std::unique_ptr<Linear>& weight) { return static_cast<const PackedLinear&>(*weight); }

// Panels that a job of so many rows goes through at once: long runs of memory where there are few rows.
std::int64_t tile_panels(std::int64_t rows) {
  return std::clamp(kTileRows / rows / kUnitPanels * kUnitPanels, kUnitPanels, kTilePanels);
}

// In which forms a layer's inputs or activations are wanted.
struct Forms {
  bool quantized[kActivationKinds] = {};
  bool wide = false;

  void add(const PackedLinear& weight) {
    for (const PackedLinear::Segment& segment : weight.segments()) {
      (segment.integer ? quantized[activation_kind(segment.type)] : wide) = true;
    }
  }
  std::int64_t bytes(std::int64_t width) const {
    const std::int64_t kinds = std::ranges::count(quantized, true);
    return kinds * records_of(width) * static_cast<std::int64_t>(sizeof(ActivationBlock)) +
           (wide ? width * static_cast<std::int64_t>(sizeof(float)) : 0);
  }
};

struct Layer {
  std::span<const ExpertWeights> weights_of;
  std::int64_t hidden = 0, width = 0;
  Forms inputs, acts;

  explicit Layer(std::span<const ExpertWeights> all) : weights_of(all) {
    OCTET_CHECK(!all.empty());
    hidden = all.front().gate_up->inputs();
    width = all.front().down->inputs();
    for (const ExpertWeights& expert : all) {
      const PackedLinear &gate_up = packed(expert.gate_up), &down = packed(expert.down);
      OCTET_CHECK(gate_up.inputs() == hidden && gate_up.segments().size() == 2);
      OCTET_CHECK(gate_up.segments()[0].outputs == width && gate_up.segments()[1].outputs == width);
      OCTET_CHECK(down.inputs() == width && down.outputs() == hidden && down.segments().size() == 1);
      inputs.add(gate_up);
      acts.add(down);
    }
  }
  std::int64_t pass_rows(std::int64_t top_k) const {
    return std::max<std::int64_t>(1, kPassBytes / (top_k * (inputs.bytes(hidden) + acts.bytes(width))));
  }
};

// Rows that are few enough for their pairs to lie in scratch.
class ExpertPass {
 public:
  ExpertPass(CpuStream& stream, const Kernels& kernels, const Layer& layer, TensorView in, TensorView ids,
             TensorView weights, TensorView out)
      : stream_(stream),
        kernels_(kernels),
        layer_(layer),
        in_(in),
        out_(out),
        plan_(plan_experts(stream.experts().plan, static_cast<std::int64_t>(layer.weights_of.size()), ids, weights)),
        members_(stream.per_member(kProductFloats + 2 * kTileRows * kPanel)) {
    const std::int64_t pairs = ids.dims[0] * ids.dims[1];
    CpuStream::ExpertScratch& scratch = stream.experts();
    for (int kind = 0; kind < kActivationKinds; ++kind) {
      if (layer.inputs.quantized[kind])
        quantized_inputs_[kind] =
            scratch.quantized_inputs[kind].reserve<ActivationBlock>(pairs * records_of(layer.hidden));
      if (layer.acts.quantized[kind])
        quantized_acts_[kind] = scratch.quantized_acts[kind].reserve<ActivationBlock>(pairs * records_of(layer.width));
    }
    if (layer.inputs.wide && in.dims[0] > 1) inputs_ = scratch.inputs.reserve<float>(pairs * layer.hidden);
    if (layer.acts.wide) acts_ = scratch.acts.reserve<float>(pairs * layer.width);
  }

  void run() {
    bring_inputs();
    gate_up();
    down();
  }

 private:
  bool lone_row() const { return in_.dims[0] == 1; }
  const ExpertWeights& weights(const ExpertJob& job) const {
    return layer_.weights_of[static_cast<std::size_t>(job.expert)];
  }
  const PackedLinear::Segment& gate_of(const ExpertJob& job) const {
    return packed(weights(job).gate_up).segments().front();
  }
  const PackedLinear::Segment& down_of(const ExpertJob& job) const {
    return packed(weights(job).down).segments().front();
  }
  // Where a job's rows begin; a lone row is the same for all its experts.
  std::int64_t input_block(const ExpertJob& job) const {
    return lone_row() ? 0 : job.first * records_of(layer_.hidden);
  }
  std::int64_t act_block(const ExpertJob& job) const { return job.first * records_of(layer_.width); }

  void bring_inputs();
  void gate_up();
  void gate_up_tile(const ExpertJob& job, std::int64_t panel, std::int64_t count, const std::byte* next,
                    float* scratch) const;
  void quantize_input(const float* row, std::int64_t block, std::int64_t stride) const;
  void keep_acts(const ExpertJob& job, std::int64_t panel, std::int64_t count, const float* acts) const;
  void down();
  void down_panels(std::int64_t begin, std::int64_t end, float* scratch) const;
  void add_weighted(const ExpertJob& job, std::int64_t panel, const float* sums) const;
  PanelRows input_rows(const ExpertJob& job) const;
  PanelRows act_rows(const ExpertJob& job) const;

  CpuStream& stream_;
  const Kernels& kernels_;
  const Layer& layer_;
  TensorView in_, out_;
  ExpertPlan plan_;
  CpuStream::PerMember members_;
  ActivationBlock* quantized_inputs_[kActivationKinds] = {};  // per job [blocks of hidden][rows]
  float* inputs_ = nullptr;                                   // [pairs][hidden]
  ActivationBlock* quantized_acts_[kActivationKinds] = {};    // per job [blocks of width][rows]
  float* acts_ = nullptr;                                     // [pairs][width]
};

void ExpertPass::quantize_input(const float* row, std::int64_t block, std::int64_t stride) const {
  for (int kind = 0; kind < kActivationKinds; ++kind) {
    if (quantized_inputs_[kind] == nullptr) continue;
    kernels_.quantize(row, layer_.hidden, kActivationLimits[kind], quantized_inputs_[kind] + block, stride);
  }
}

// Inputs in the order of the pairs.
void ExpertPass::bring_inputs() {
  if (lone_row()) return quantize_input(in_.as<const float>(), 0, 1);
  constexpr std::int64_t kValuesPerTask = 16384;
  const std::int64_t hidden = layer_.hidden, grain = std::max<std::int64_t>(1, kValuesPerTask / hidden);
  stream_.team().parallel_for(
      static_cast<std::int64_t>(plan_.pairs.size()), grain, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const ExpertPair& pair = plan_.pairs[static_cast<std::size_t>(i)];
          const ExpertJob& job = plan_.jobs[static_cast<std::size_t>(pair.job)];
          const auto* row = in_.row<const float>(pair.row);
          quantize_input(row, input_block(job) + i - job.first, job.rows);
          if (inputs_ != nullptr && job.rows > 1)
            std::memcpy(inputs_ + i * hidden, row, static_cast<std::size_t>(hidden) * sizeof(float));
        }
      });
}

PanelRows ExpertPass::input_rows(const ExpertJob& job) const {
  PanelRows rows{.in = inputs_, .in_stride = layer_.hidden, .rows = job.rows};
  if (inputs_ != nullptr) rows.in += job.first * layer_.hidden;
  if (job.rows == 1) rows.in = in_.row<const float>(plan_.pairs[static_cast<std::size_t>(job.first)].row);
  for (int kind = 0; kind < kActivationKinds; ++kind) {
    if (quantized_inputs_[kind] != nullptr) rows.quantized[kind] = quantized_inputs_[kind] + input_block(job);
  }
  return rows;
}

PanelRows ExpertPass::act_rows(const ExpertJob& job) const {
  PanelRows rows{.in_stride = layer_.width, .rows = job.rows};
  if (acts_ != nullptr) rows.in = acts_ + job.first * layer_.width;
  for (int kind = 0; kind < kActivationKinds; ++kind) {
    if (quantized_acts_[kind] != nullptr) rows.quantized[kind] = quantized_acts_[kind] + act_block(job);
  }
  return rows;
}

// One list of units over all jobs.
void ExpertPass::gate_up() {
  const std::int64_t panels = packed(layer_.weights_of.front().gate_up).segments()[0].panels;
  const std::int64_t units = (panels + kUnitPanels - 1) / kUnitPanels;
  const auto jobs = static_cast<std::int64_t>(plan_.jobs.size());
  const auto job_of = [&](std::int64_t unit) -> const ExpertJob& {
    return plan_.jobs[static_cast<std::size_t>(unit / units)];
  };
  // A unit at a time evens out the threads; `next` goes past what a thread has taken, since it mostly goes on there.
  stream_.team().parallel_for(jobs * units, 1, [&](int member, std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end;) {
      const ExpertJob& job = job_of(unit);
      const std::int64_t first = unit % units, last = std::min(units, first + end - unit);
      const std::int64_t at_once = tile_panels(job.rows), stop = std::min(panels, last * kUnitPanels);
      unit += last - first;
      for (std::int64_t panel = first * kUnitPanels; panel < stop; panel += at_once) {
        const std::byte* next = nullptr;
        if (panel + at_once < stop) {
          next = gate_of(job).panel(panel + at_once);
        } else if (unit < jobs * units) {
          next = gate_of(job_of(unit)).panel(unit % units * kUnitPanels);
        }
        gate_up_tile(job, panel, std::min(at_once, stop - panel), next, members_.of(member));
      }
    }
  });
}

void add_bias(const float* bias, const PackedLinear::Segment& segment, std::int64_t panel, std::int64_t count,
              std::int64_t rows, float* sums) {
  if (bias == nullptr) return;
  bias += segment.first_output + panel * kPanel;
  for (std::int64_t i = 0; i < count; ++i, bias += kPanel) {
    for (std::int64_t r = 0; r < rows; ++r, sums += kPanel) {
      for (std::int64_t lane = 0; lane < segment.outputs_of(panel + i); ++lane) sums[lane] += bias[lane];
    }
  }
}

// scratch: kProductFloats, then kTileRows sums of gate and of up.
void ExpertPass::gate_up_tile(const ExpertJob& job, std::int64_t panel, std::int64_t count, const std::byte* next,
                              float* scratch) const {
  const PackedLinear& weight = packed(weights(job).gate_up);
  const PanelRows rows = input_rows(job);
  float* gate = scratch + kProductFloats;
  float* up = gate + kTileRows * kPanel;
  float* const sums[] = {gate, up};
  for (std::size_t i = 0; i < 2; ++i) {
    const PackedLinear::Segment& segment = weight.segments()[i];
    const std::byte* after = i == 0 ? weight.segments()[1].panel(panel) : next;
    multiply_panels(kernels_, segment, layer_.hidden, rows, panel, count, after, scratch, sums[i]);
    add_bias(weight.bias(), segment, panel, count, job.rows, sums[i]);
  }
  kernels_.silu_mul(gate, up, count * job.rows * kPanel, gate);
  keep_acts(job, panel, count, gate);
}

// acts: [count][rows][16]. `panel` is even.
void ExpertPass::keep_acts(const ExpertJob& job, std::int64_t panel, std::int64_t count, const float* acts) const {
  for (std::int64_t i = 0; i < count; i += kPanelPair) {
    const std::int64_t at = (panel + i) * kPanel, values = std::min<std::int64_t>(kBlock, layer_.width - at);
    for (std::int64_t r = 0; r < job.rows; ++r) {
      float block[kBlock] = {};
      for (std::int64_t half = 0; half < std::min(kPanelPair, count - i); ++half) {
        std::memcpy(block + half * kPanel, acts + ((i + half) * job.rows + r) * kPanel, kPanel * sizeof(float));
      }
      for (int kind = 0; kind < kActivationKinds; ++kind) {
        if (quantized_acts_[kind] == nullptr) continue;
        kernels_.quantize(block, kBlock, kActivationLimits[kind],
                          quantized_acts_[kind] + act_block(job) + at / kBlock * job.rows + r, 1);
      }
      if (acts_ != nullptr)
        std::memcpy(acts_ + (job.first + r) * layer_.width + at, block,
                    static_cast<std::size_t>(values) * sizeof(float));
    }
  }
}

// Threads divide the outputs; each goes through the experts in ascending order.
void ExpertPass::down() {
  const std::int64_t panels = packed(layer_.weights_of.front().down).panels();
  const std::int64_t grain = std::clamp<std::int64_t>(panels / (stream_.team().size() * 2) / kUnitPanels * kUnitPanels,
                                                      kUnitPanels, kTilePanels / 2);
  stream_.team().parallel_for(panels, grain, [&](int member, std::int64_t begin, std::int64_t end) {
    down_panels(begin, end, members_.of(member));
  });
}

void ExpertPass::down_panels(std::int64_t begin, std::int64_t end, float* scratch) const {
  const std::int64_t first = begin * kPanel, count = std::min(end * kPanel, layer_.hidden) - first;
  for (std::int64_t row = 0; row < out_.dims[0]; ++row) std::fill_n(out_.row<float>(row) + first, count, 0.0f);
  float* sums = scratch + kProductFloats;
  for (std::size_t j = 0; j < plan_.jobs.size(); ++j) {
    const ExpertJob& job = plan_.jobs[j];
    const PackedLinear& weight = packed(weights(job).down);
    const PackedLinear::Segment& segment = down_of(job);
    const std::byte* after = j + 1 < plan_.jobs.size() ? down_of(plan_.jobs[j + 1]).panel(begin) : nullptr;
    const PanelRows rows = act_rows(job);
    const std::int64_t at_once = tile_panels(job.rows);
    for (std::int64_t panel = begin; panel < end; panel += at_once) {
      const std::int64_t panels = std::min(at_once, end - panel);
      const std::byte* next = panel + panels < end ? segment.panel(panel + panels) : after;
      multiply_panels(kernels_, segment, layer_.width, rows, panel, panels, next, scratch, sums);
      add_bias(weight.bias(), segment, panel, panels, job.rows, sums);
      for (std::int64_t i = 0; i < panels; ++i) add_weighted(job, panel + i, sums + i * job.rows * kPanel);
    }
  }
}

void ExpertPass::add_weighted(const ExpertJob& job, std::int64_t panel, const float* sums) const {
  const std::int64_t first = panel * kPanel, outputs = std::min<std::int64_t>(kPanel, layer_.hidden - first);
  for (std::int64_t r = 0; r < job.rows; ++r, sums += kPanel) {
    const ExpertPair& pair = plan_.pairs[static_cast<std::size_t>(job.first + r)];
    float* out = out_.row<float>(pair.row) + first;
    if (outputs == kPanel) {
      for (std::int64_t lane = 0; lane < kPanel; ++lane) out[lane] += pair.weight * sums[lane];
    } else {
      for (std::int64_t lane = 0; lane < outputs; ++lane) out[lane] += pair.weight * sums[lane];
    }
  }
}

TensorView rows_of(const TensorView& whole, std::int64_t first, std::int64_t count) {
  TensorView view = whole;
  view.data = whole.as<std::byte>() + bytes_of(whole.dtype, first * whole.strides[0]);
  view.dims[0] = count;
  return view;
}

}  // namespace

void experts(CpuStream& stream, const Kernels& kernels, std::span<const ExpertWeights> weights_of, TensorView in,
             TensorView ids, TensorView weights, TensorView out) {
  const Layer layer(weights_of);
  const std::int64_t rows = in.dims[0], top_k = ids.dims[1];
  OCTET_CHECK(in.dims[1] == layer.hidden && out.dims[1] == layer.hidden && out.dims[0] == rows);
  OCTET_CHECK(ids.dims[0] == rows && weights.dims[0] == rows && weights.dims[1] == top_k);
  const std::int64_t pass_rows = layer.pass_rows(top_k);
  for (std::int64_t row = 0; row < rows; row += pass_rows) {
    const std::int64_t count = std::min(pass_rows, rows - row);
    ExpertPass(stream, kernels, layer, rows_of(in, row, count), rows_of(ids, row, count), rows_of(weights, row, count),
               rows_of(out, row, count))
        .run();
  }
}

std::int64_t expert_scratch_bytes(std::int64_t rows, std::int64_t top_k, std::int64_t hidden, std::int64_t width) {
  const Forms both{.quantized = {true}, .wide = true};
  const std::int64_t row_bytes = top_k * (both.bytes(hidden) + both.bytes(width));
  const std::int64_t bytes = std::min(rows * row_bytes, std::max(kPassBytes, row_bytes));
  return bytes + bytes / 4;  // scratch grows by a little more than is asked for
}

}  // namespace octet::ops::cpu
