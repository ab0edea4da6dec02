export { LlamaGymError, type ErrorCode } from "./errors.js";
