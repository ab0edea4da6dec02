/** Models for Vercel's AI SDK (llamagym/ai-sdk). */
export { toAiSdkModel, type AiSdkModelOptions } from "./app/server/ai-sdk-model.js";
