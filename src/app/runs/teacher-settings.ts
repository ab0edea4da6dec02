import { invalidArgument } from "../../core/errors.js";
import { defineSettings, number, text, type Settings } from "../../core/settings.js";

/** Settings of on-policy distillation. */
export const teacherSettings = defineSettings(
  {
    teacher: text({
      valueName: "path, id, URL or self",
      description:
        "Teacher with the same tokenizer, whose log-probabilities of the sampled tokens are part of their advantages: a run, an adapter, a model's folder, a GGUF file, a Hugging Face id, the address of a server (llamagym serve, vLLM, SGLang; its key comes from the environment variable OPENAI_API_KEY), or self with hints.",
    }),
    teacherModel: text({
      valueName: "name",
      description: "Model of the teacher's server. Default: its first.",
    }),
    teacherHint: text({
      valueName: "text",
      description:
        "Text that the teacher's system prompt has in addition; info.hint of the environment follows the observation of its turn.",
    }),
    teacherCoef: number({
      default: 1,
      min: 0,
      description: "Weight of the reverse KL divergence from the teacher per token.",
      source: "tinker-cookbook",
    }),
    teacherRewardCoef: number({
      default: 1,
      min: 0,
      description: "Weight of the advantages of rewards, with a teacher. 0 learns from the teacher alone.",
    }),
  },
  { group: "Teacher", scope: "algorithm" },
);

type TeacherConfig = Settings<typeof teacherSettings>;

/** Settings of a run that a teacher at a URL limits. */
interface SampledRun {
  readonly actionMode: string;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
}

/** Whether a teacher is the address of a server. */
export const isTeacherUrl = (teacher: string): boolean => /^https?:\/\//u.test(teacher);

/**
 * @throws INVALID_ARGUMENT for settings that need a teacher, and what a teacher at a URL cannot
 * score.
 */
export function checkTeacher(config: TeacherConfig & SampledRun): void {
  const { teacher, teacherModel } = config;
  if (teacher === undefined) {
    const names = ["teacherModel", "teacherHint", "teacherCoef", "teacherRewardCoef"] as const;
    const name = names.find((key) => config[key] !== teacherSettings[key].default);
    if (name !== undefined)
      throw invalidArgument(`\`${name}\` has no effect without \`teacher\`. Add it, or remove this.`);
    return;
  }
  if (!isTeacherUrl(teacher)) {
    if (teacherModel === undefined) return;
    throw invalidArgument("`teacherModel` names a model of a server. Set `teacher` to its address, or remove this.");
  }
  const problem = findServerProblem(config);
  if (problem !== undefined) throw invalidArgument(`A teacher at a URL cannot score this: ${problem}.`);
}

function findServerProblem({ actionMode, temperature, topK, topP, minP }: SampledRun): string | undefined {
  if (actionMode === "regex" || actionMode === "schema")
    return `\`actionMode\` ${actionMode} constrains each token to a part of the vocabulary. Use free, or choices where actions can be listed`;
  if (topK > 0 || topP < 1 || minP > 0)
    return "topK, topP and minP leave out tokens, and a server scores among all. Set them to 0, 1 and 0";
  if (temperature !== 1 && actionMode === "free")
    return `\`temperature\` is ${temperature}, but a server scores free completions at 1. Set it to 1`;
  return undefined;
}
