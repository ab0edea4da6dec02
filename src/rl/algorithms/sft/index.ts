export type { SftConfig, SftOptions } from "./settings.js";
export type { ChatExample, CompletionExample, SftExample, TokenExample } from "../../data/sft-example.js";
export {
  readExamples,
  type InvalidLine,
  type ReadExamples,
  type ReadExamplesOptions,
} from "../../data/read-examples.js";
export {
  SftTrainer,
  type SftEvaluation,
  type SftState,
  type SftMetrics,
  type SftTrainerOptions,
  type SftCallbacks,
} from "./sft-trainer.js";
