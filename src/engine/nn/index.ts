export {
  type KeyValueBlock,
  type PadIndex,
  type PaddedShape,
  attend,
  attentionBias,
  getAttentionShape,
  padHeads,
  unpadHeads,
} from "./attention.js";
export type {
  DecoderConfig,
  LayerConfig,
  LayerNames,
  LinearBiases,
  RopeConfig,
  RopeScaling,
} from "./decoder-config.js";
export { type AttentionFunction, type PositionInputs, type TokenSelection, decoder } from "./decoder.js";
export type { ParameterScope } from "./parameter-scope.js";
export { computeRopeFrequencies, computeRopeTables, fixedFrequencyLength, getRopeRegime } from "./rope.js";
export {
  VALUE_HEAD_DEFAULTS,
  type ValueHeadConfig,
  getValueHeadLayers,
  isValueHeadParameter,
  valueHead,
} from "./value-head.js";
