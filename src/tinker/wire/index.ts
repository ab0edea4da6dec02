export {
  decodeForwardBackward,
  decodeForwardBackwardOutput,
  encodeForwardBackward,
  encodeForwardBackwardOutput,
  type ForwardBackwardOutput,
  type ForwardBackwardRequest,
  type TrainingDatum,
} from "./forward-backward.js";
export * as requests from "./requests.js";
export * as responses from "./responses.js";
export {
  decodeSampleResponse,
  encodeSampleResponse,
  type SampledSequence,
  type SampleResponse,
  type TokenLogprob,
} from "./sample-response.js";
export { checkTensor, toDense, type WireTensor } from "./wire-tensor.js";
