"""Numbers that Python computes from sizes in FP64, exact in a file that has FP32."""
