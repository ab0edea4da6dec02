export { defaultMicroBatchTokens } from "./micro-batch-memory.js";
