import { type JsonRecord, corruptFileError, isObject, readObjectList, readPart } from "./tokenizer-json.js";

/** Adds special tokens around the ids of a text. */
export type PostProcessor = (ids: readonly number[]) => number[];

/** Maximum ids that one special token of a template stands for; published ones stand for one. */
const MAX_TEMPLATE_IDS = 1_000;

const addPair = (config: JsonRecord): PostProcessor => {
  const [cls, sep] = [readPairId(config, "cls"), readPairId(config, "sep")];
  return (ids) => [cls, ...ids, sep];
};

const postProcessors: Readonly<Record<string, (config: JsonRecord) => PostProcessor | null>> = {
  TemplateProcessing: createTemplateProcessor,
  ByteLevel: () => null,
  Sequence: (config) => {
    const parts = readObjectList(config, "processors")
      .map(createPostProcessor)
      .filter((part) => part !== null);
    return parts.length === 0 ? null : (ids) => parts.reduce<number[]>((current, part) => part(current), [...ids]);
  },
  BertProcessing: addPair,
  RobertaProcessing: addPair,
};

/** Creates the post-processor that tokenizer.json describes, or null if it adds nothing. */
export function createPostProcessor(config: unknown): PostProcessor | null {
  if (config === null || config === undefined) return null;
  return readPart("A post-processor", config, postProcessors)(undefined);
}

/**
 * Creates a post-processor that adds a beginning and an end token, or null if both are undefined.
 */
export function surroundWith(first: number | undefined, last: number | undefined): PostProcessor | null {
  if (first === undefined && last === undefined) return null;
  const before = first === undefined ? [] : [first];
  const after = last === undefined ? [] : [last];
  return (ids) => [...before, ...ids, ...after];
}

/** A template lists the text's ids and special tokens. */
function createTemplateProcessor(config: JsonRecord): PostProcessor | null {
  const specialTokens = isObject(config.special_tokens) ? config.special_tokens : {};
  const before: number[] = [];
  const after: number[] = [];
  let isAfterText = false;
  for (const item of readObjectList(config, "single")) {
    if (isObject(item.Sequence)) {
      isAfterText = true;
    } else if (isObject(item.SpecialToken)) {
      const entry = specialTokens[String(item.SpecialToken.id)];
      const ids: unknown = isObject(entry) ? entry.ids : undefined;
      if (!Array.isArray(ids) || !ids.every((id) => typeof id === "number"))
        throw corruptFileError(
          `tokenizer.json: the template's token ${JSON.stringify(item.SpecialToken.id)} has no ids.`,
        );
      if (ids.length > MAX_TEMPLATE_IDS)
        throw corruptFileError(`tokenizer.json: a template's token has ${ids.length} ids.`);
      (isAfterText ? after : before).push(...ids);
    }
  }
  if (before.length === 0 && after.length === 0) return null;
  return (ids) => [...before, ...ids, ...after];
}

function readPairId(config: JsonRecord, key: string): number {
  const pair = config[key];
  if (Array.isArray(pair) && typeof pair[1] === "number") return pair[1];
  throw corruptFileError(`tokenizer.json: "${key}" of ${String(config.type)} must be a token and its id.`);
}
