import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { isJsonObject } from "../../core/json.js";
import type { LanguageModel, PolicyBackend } from "../../generation/index.js";

interface AlgorithmTraits {
  readonly name: string;
  readonly title?: string;
  readonly critic?: boolean;
  readonly klSetting?: string;
}

/** Whether the algorithm compares with the reference policy. */
export function usesReference({ klSetting }: { readonly klSetting?: string }, config: object): boolean {
  return klSetting !== undefined && Number((config as Readonly<Record<string, unknown>>)[klSetting]) > 0;
}

/** Whether the reference policy is a copy of the trained parameters. */
export function copiesReference({ syncRefModel = false }: { readonly syncRefModel?: boolean }): boolean {
  return syncRefModel;
}

/** @throws INVALID_STATE for a model that the algorithm cannot train. */
export function checkModel(model: PolicyBackend, algorithm: AlgorithmTraits, config: object): void {
  const { name, title = name, critic = false, klSetting } = algorithm;
  const openHint = critic
    ? "Open it with AutoModelForCausalLMWithValueHead.fromPretrained"
    : "Open it with AutoModelForCausalLM.fromPretrained and add an adapter with getPeftModel";
  const problem = !model.isTrainable
    ? `it has no trainable parameters. ${openHint}`
    : critic && model.valueHead === undefined
      ? `it has no value head. ${openHint}`
      : !critic && model.valueHead !== undefined
        ? `it has a value head, which the algorithm would not train. ${openHint}`
        : usesReference(algorithm, config) && !model.hasAdapter && !copiesReference(config)
          ? `${klSetting} weighs the KL to the model without its adapter, but it has no adapter. Set ${klSetting} to 0, or train an adapter`
          : copiesReference(config) && model.causalLM === undefined
            ? "`syncRefModel` copies its parameters, which a service does not return. Set it to false, or train in this process"
            : undefined;
  if (problem !== undefined) throw new LlamaGymError("INVALID_STATE", `${title} cannot train the model: ${problem}.`);
}

/**
 * Checks that a teacher has the student's tokens. Matrices may have rows behind the tokenizer's
 * last token, as models of one family do. @throws INVALID_ARGUMENT
 */
export function checkSameTokenizer(student: LanguageModel, teacher: LanguageModel): void {
  const [size, teacherSize] = [student, teacher].map(({ policy }) => policy.config.vocabSize);
  const textOf = (model: LanguageModel, token: number) =>
    token < model.policy.config.vocabSize ? model.tokenizer.decode([token], { skipSpecialTokens: false }) : "";
  if (!student.hasTokenizer || !teacher.hasTokenizer) {
    if (size !== teacherSize) throw differentTokenizer(`it has ${teacherSize} tokens instead of ${size}`);
    return;
  }
  for (let token = 0; token < Math.max(size, teacherSize); token++) {
    const [text, teacherText] = [textOf(student, token), textOf(teacher, token)];
    if (text !== teacherText) throw differentTokens(token, teacherText, text);
  }
}

/** Returns the error about a token that the teacher has with another text. */
export function differentTokens(token: number, teacherText: string, text: string): LlamaGymError {
  return differentTokenizer(`token ${token} is ${JSON.stringify(teacherText)} instead of ${JSON.stringify(text)}`);
}

function differentTokenizer(difference: string): LlamaGymError {
  return invalidArgument(
    `The teacher's tokenizer differs from the student's: ${difference}. A teacher scores the student's tokens, so both need the same ` +
      "tokenizer. Use a model of the same family, or train on the teacher's completions with llamagym sft --teacher.",
  );
}

/**
 * Checks that a saved state has finite numbers where a learner's initial state has numbers, and
 * objects where that has objects.
 * @throws FILE_CORRUPT, naming the field.
 */
export function checkSavedState(saved: unknown, initial: unknown, name = "The state of the algorithm"): void {
  if (typeof initial === "number" && !Number.isFinite(saved))
    throw new LlamaGymError("FILE_CORRUPT", `${name} in the checkpoint is ${JSON.stringify(saved)}, not a number.`);
  if (Array.isArray(initial) && Array.isArray(saved) && saved.length === initial.length)
    saved.forEach((item: unknown, i) => checkSavedState(item, initial[i], `${name}: ${i}`));
  if (!isJsonObject(initial)) return;
  if (!isJsonObject(saved))
    throw new LlamaGymError("FILE_CORRUPT", `${name} in the checkpoint is ${JSON.stringify(saved)}, not an object.`);
  for (const field of Object.keys(initial)) checkSavedState(saved[field], initial[field], `${name}: ${field}`);
}
