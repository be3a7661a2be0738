#pragma once
// What the kernels use of this header is built into NVRTC, but for what it takes from math.h.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
