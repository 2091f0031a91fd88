// hipCUB is CUB there.
#pragma once
#pragma clang system_header
#include "../hip/hip_runtime.h"
namespace hipcub = cub;
