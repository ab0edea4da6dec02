export { headIndices, padIndexFeeds, positionFeeds } from "./attention-feeds.js";
export { decodeGraph } from "./decode-graph.js";
export { FrozenStates, type SavedFrozenStates } from "./frozen-states.js";
export { type EntropyMode, type PolicyNodes, vocabularyLogits } from "./policy-nodes.js";
export { type PrefixLayout, sequenceKeys } from "./prefix-layout.js";
export { type MicroBatch, type PackingOptions, packSharedPrefixes } from "./prefix-packing.js";
export {
  PADDING_POSITION,
  type TokenPosition,
  checkTokens,
  packSequences,
  sharedPrefixLength,
} from "./sequence-batch.js";
export { FROZEN_STATES, sequenceGraph } from "./sequence-graph.js";
export { type SelectedToken, type TokenBatch, paysOffAsHead } from "./token-batch.js";
export {
  type GraphOptions,
  type LossResult,
  ScoringGraph,
  type ScoringNodes,
  type TokenScores,
  TrainingGraph,
  type TrainingRunOptions,
} from "./training-graph.js";
