export type { SftConfig, SftOptions } from "./config.js";
export type { ChatExample, CompletionExample, SftExample, TokenExample } from "./example.js";
export { readExamples, type BrokenLine, type ReadExamples, type ReadExamplesOptions } from "./jsonl.js";
export {
  SftTrainer,
  type SftEvaluation,
  type SftState,
  type SftStats,
  type SftTrainerOptions,
  type SftWatch,
} from "./trainer.js";
