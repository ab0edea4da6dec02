export type { SftConfig, SftOptions } from "./settings.js";
export type { ChatExample, CompletionExample, SftExample, TokenExample } from "../../data/sft-example.js";
export {
  readExamples,
  type InvalidLine,
  type ReadExamples,
  type ReadExamplesOptions,
} from "../../data/read-examples.js";
export type { SftEvaluation, SftMetrics } from "./sft-learner.js";
