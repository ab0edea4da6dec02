import { invalidArgument } from "../../core/errors.js";
import { choice, defineSettings, integer, number, text, type Settings } from "../../core/settings.js";
import { modelSettings, tuningSettings } from "../../models/index.js";
import { checkEarlyStopping, earlyStoppingSettings, loopSettings } from "../../rl/train/index.js";
import { serviceSettings } from "../../tinker/index.js";
import { trackingSettings } from "./tracking-settings.js";

/** Settings of runs on files of examples, without those of the training itself. */
export const exampleRunSettings = defineSettings({
  ...modelSettings,
  ...serviceSettings,
  ...tuningSettings,
  ...trackingSettings,
  evalData: text({
    valueName: "file",
    changeable: "resume",
    common: true,
    description: "JSONL, JSON or CSV file of evaluation examples.",
  }),
  evalSplit: number({
    default: 0,
    min: 0,
    max: 0.99,
    description: "Fraction of the examples held out for evaluation, without evalData.",
  }),
  evalSteps: integer({ min: 1, description: "Number of updates between evaluations. Default: once per epoch." }),
  ...earlyStoppingSettings,
  saveSteps: { ...loopSettings.saveSteps, default: 100 },
  onInvalidLine: choice({
    default: "error",
    choices: ["error", "skip"],
    description: "Whether an invalid line fails the run or is skipped.",
  }),
  prompts: choice({
    default: "auto",
    choices: ["auto", "chat", "text"],
    description:
      "Format of prompt and completion texts: chat messages or plain text. auto is chat for models with a chat template.",
  }),
});

/** @throws INVALID_ARGUMENT for evaluations without examples for them. */
export function checkExampleEvaluations({
  evalData,
  evalSplit,
  evalSteps,
  earlyStoppingPatience,
  earlyStoppingThreshold,
}: Settings<typeof exampleRunSettings>): void {
  checkEarlyStopping({ earlyStoppingPatience, earlyStoppingThreshold });
  const needing = Object.entries({ evalSteps, earlyStoppingPatience }).find(([, value]) => value !== undefined)?.[0];
  if (needing === undefined || evalData !== undefined || evalSplit > 0) return;
  throw invalidArgument(`\`${needing}\` needs examples to evaluate: set \`evalData\` or \`evalSplit\`.`);
}
