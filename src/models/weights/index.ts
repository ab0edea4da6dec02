export { defaultMicroBatchTokens } from "./micro-batch-memory.js";
export { clearCachedWeights, getMaxCacheBytes, listCachedWeights, type CachedWeightsInfo } from "./weight-cache.js";
