// Which experts a token goes to.
#pragma once
#include "octet/ops/backend.h"
#include "octet/ops/cpu/stream.h"

namespace octet::ops::cpu {

// Backend::route(). A row at a time with one order of every sum, so a row's choice depends on that row alone.
void route(CpuStream& stream, const RouterSpec& spec, TensorView logits, TensorView ids, TensorView weights,
           TensorView loads);

}  // namespace octet::ops::cpu
