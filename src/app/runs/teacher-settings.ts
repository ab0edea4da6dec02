import { invalidArgument } from "../../core/errors.js";
import { defineSettings, number, text, type Settings } from "../../core/settings.js";

/** Settings of on-policy distillation. */
export const teacherSettings = defineSettings(
  {
    teacher: text({
      valueName: "path, id or self",
      description:
        "Teacher with the same tokenizer, whose log-probabilities of the sampled tokens are part of their advantages: a run, an adapter, a model's folder, a GGUF file, a Hugging Face id, or self with teacherHint.",
    }),
    teacherHint: text({
      valueName: "text",
      description: "Text that the teacher's system prompt has in addition.",
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

/**
 * @throws INVALID_ARGUMENT for settings that need a teacher, and for the teacher self without a
 * hint.
 */
export function checkTeacher(config: TeacherConfig): void {
  const { teacher, teacherHint } = config;
  if (teacher === "self" && teacherHint === undefined)
    throw invalidArgument("`teacher` is self, which needs a `teacherHint`: without it, the teacher is the student.");
  if (teacher !== undefined) return;
  const names = ["teacherHint", "teacherCoef", "teacherRewardCoef"] as const;
  const name = names.find((key) => config[key] !== teacherSettings[key].default);
  if (name !== undefined)
    throw invalidArgument(`\`${name}\` has no effect without \`teacher\`. Add it, or remove this.`);
}
