export { type BufferView, type IoBinding, subview } from "./buffer-view.js";
export { chooseDevice, getDeviceRates, measureProducts, prefersGpu } from "./choose-device.js";
export {
  type ChosenDevice,
  type Device,
  type DeviceRates,
  getRuntimeVersion,
  isSoftwareAdapter,
  listInstalledDevices,
  resolveDevice,
} from "./device.js";
export type { SampleResult, SamplingRow, ScoreResult } from "./kernels/run-kernel.js";
export {
  type SampledToken,
  type SamplingParams,
  type TokenDistribution,
  filtersTokens,
  listTokens,
  sampleFromDistribution,
} from "./kernels/sampling.js";
export { formatPackedForm } from "./packed-forms.js";
export { Runtime, type SessionOptions } from "./runtime.js";
export { type Feeds, Session } from "./session.js";
export type { GpuReport, WorkerRequest } from "./worker-protocol.js";
