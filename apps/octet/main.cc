#include <cstdio>

int main() {
  std::printf("octet %s\n", OCTET_VERSION);
  return 0;
}
