export type { Demonstration, DemonstrationTurn } from "./read-demonstrations.js";
export { type InvalidLine, readExamples } from "./read-examples.js";
export { encodeExample, type SftExample, toMessages } from "./sft-example.js";
export type { ReadExamplesOptions } from "./read-examples.js";
export { describeSkippedRows, readRows } from "./read-rows.js";
export { MESSAGE_KEYS, PROMPT_KEYS } from "./read-examples.js";
export { addSystemHint } from "./prompt-dataset.js";
