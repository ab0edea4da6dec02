/** Counts of what a device has done. */
export interface GpuCounters {
  /** Bytes written to the device. */
  bytesUp: number;
  /** Bytes read back. */
  bytesDown: number;
  dispatches: number;
  submissions: number;
  /** Compiled kernels. */
  pipelines: number;
  /** Memory of all buffers, now and at its maximum. */
  bufferBytes: number;
  peakBufferBytes: number;
}
