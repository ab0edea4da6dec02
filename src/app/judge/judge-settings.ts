import { invalidArgument } from "../../core/errors.js";
import { checkServerAccess } from "../../core/server-address.js";
import { defineSettings, text, type GivenSettings } from "../../core/settings.js";

/** Settings of a run's judge. */
export const judgeSettings = defineSettings(
  {
    judge: text({
      valueName: "model",
      description: "Model that scores each episode; the score, 0 to 1, is added to its last reward (docs/judge.md).",
    }),
    judgeUrl: text({
      valueName: "url",
      description: "OpenAI-compatible URL that serves the judge. Default: it is loaded here.",
    }),
    judgeRubric: text({
      valueName: "text or file",
      description: "What the judge scores, and what high and low scores mean: a text, or a file with it.",
    }),
  },
  { group: "Judge", scope: "run" },
);

export type JudgeConfig = Partial<GivenSettings<typeof judgeSettings>>;

/** Checks that the settings name a judge and its rubric, or neither. @throws INVALID_ARGUMENT */
export function checkJudge({ judge, judgeUrl, judgeRubric }: JudgeConfig): void {
  if (judge !== undefined && judgeRubric === undefined)
    throw invalidArgument("The judge needs a rubric: set `judgeRubric` (--judge-rubric).");
  if (judgeRubric?.trim() === "")
    throw invalidArgument("`judgeRubric` (--judge-rubric) is blank. Say what is judged, or name a file that does.");
  if (judge === undefined && (judgeUrl ?? judgeRubric) !== undefined)
    throw invalidArgument("`judgeUrl` and `judgeRubric` need a judge: set `judge` (--judge).");
  if (judgeUrl !== undefined)
    checkServerAccess({
      name: "judgeUrl",
      address: judgeUrl,
      example: "http://127.0.0.1:8080/v1",
      apiKey: process.env.OPENAI_API_KEY,
      keyHome: "OPENAI_API_KEY",
    });
}
