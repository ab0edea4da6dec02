export { type PeftOptions, getPeftModel, makeTrainable, replaceValueHead } from "./get-peft-model.js";
export { mergeAdapter } from "./merge-adapter.js";
