#include "octet/base/sha256.h"

#include <gtest/gtest.h>

namespace octet {
namespace {

// The digest of "abc" is an example of FIPS 180-2.
TEST(Sha256, HasTwoForms) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

}  // namespace
}  // namespace octet
