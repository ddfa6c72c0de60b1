#include "octet/server/reply.h"

namespace octet::server {

void Reply::cut(const ApiError&, ReplyPart& part) {
  abandon();
  part.end = ReplyPart::End::kBroken;
}

}  // namespace octet::server
