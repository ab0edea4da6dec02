import { LlamaGymError } from "../../core/errors.js";
import { type AddedToken, readAddedTokens, readAddedToken } from "./tokenization/added-tokens.js";
import { type JsonRecord, isObject } from "./tokenization/tokenizer-json.js";

/** Roles of special tokens in tokenizer_config.json. */
const roles = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"] as const;

/** Role of a special token. */
export type SpecialTokenRole = (typeof roles)[number];

/** Special tokens of a tokenizer. */
export interface SpecialTokens {
  /** Content by role; available to chat templates as variables. */
  readonly byRole: ReadonlyMap<SpecialTokenRole, string>;
  /** All added tokens, tokenizer.json's first. */
  readonly added: readonly AddedToken[];
}

/**
 * Reads the special tokens as Transformers does: tokens that only tokenizer_config.json or
 * special_tokens_map.json name are appended to tokenizer.json's with the next ids;
 * added_tokens_decoder also changes how a token of tokenizer.json matches. Without it, the tokens
 * of added_tokens.json are appended.
 */
export function readSpecialTokens(
  tokenizerJson: JsonRecord,
  config: JsonRecord,
  { specialTokensMap, addedTokens }: { readonly specialTokensMap: JsonRecord; readonly addedTokens: JsonRecord },
  vocabulary: ReadonlyMap<string, number>,
): SpecialTokens {
  // Redundant with added_tokens_decoder.
  const namedTokens = isObject(config.added_tokens_decoder) ? config : { ...config, ...specialTokensMap };
  const byRole = new Map<SpecialTokenRole, string>();
  for (const role of roles) {
    const content = getTokenContent(namedTokens[role]);
    if (content !== null) byRole.set(role, content);
  }
  const added = readAddedTokens(tokenizerJson);
  const known = new Set(added.map((token) => token.content));
  let nextId = findNextFreeId(vocabulary, added);
  const add = (entry: JsonRecord) => {
    const content = String(entry.content);
    if (known.has(content)) return;
    known.add(content);
    added.push(readAddedToken(entry, vocabulary.get(content) ?? nextId++));
  };
  const entries = isObject(config.added_tokens_decoder)
    ? readDecoderEntries(config.added_tokens_decoder)
    : readLegacyEntries(addedTokens, added, config, specialTokensMap);
  for (const entry of entries) {
    const index = added.findIndex(({ content }) => content === entry.content);
    if (index < 0) add(entry);
    else added[index] = withFlags(added[index], entry);
  }
  for (const role of roles) {
    const content = byRole.get(role);
    if (content !== undefined) add(toSpecialEntry(namedTokens[role], content));
  }
  // A token with a name is special, even if tokenizer.json lists it as one that is not.
  const named = new Set([...byRole.values(), ...readModelTokens(namedTokens).map(getTokenContent)]);
  added.forEach((token, i) => {
    if (named.has(token.content)) added[i] = { ...token, special: true };
  });
  for (const extraToken of readExtraTokens(namedTokens))
    add(toSpecialEntry(extraToken, getTokenContent(extraToken) ?? ""));
  return { byRole, added };
}

/**
 * Returns a token that matches as an entry of added_tokens_decoder says; a special token stays one.
 */
function withFlags(token: AddedToken, entry: JsonRecord): AddedToken {
  const changed = readAddedToken(entry, token.id);
  return { ...changed, special: token.special || changed.special };
}

/** More end-of-sequence tokens than any model has; each completion is searched for them. */
const MAX_EOS_TOKENS = 1000;

/**
 * Returns generation_config.json's eos_token_id, a number or a list, as a list. @throws
 * FILE_CORRUPT for more than 1,000.
 */
export function readEosTokenIds({ eos_token_id: ids }: JsonRecord): number[] {
  const list: unknown[] = Array.isArray(ids) ? ids : [ids];
  if (list.length > MAX_EOS_TOKENS)
    throw new LlamaGymError(
      "FILE_CORRUPT",
      `eos_token_id in generation_config.json has ${list.length} tokens, expected at most ${MAX_EOS_TOKENS}. Correct the file.`,
    );
  return list.filter((id): id is number => typeof id === "number" && Number.isSafeInteger(id) && id >= 0);
}

/** Returns a token's content from a string or an object. */
function getTokenContent(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (isObject(value) && typeof value.content === "string") return value.content;
  return null;
}

function toSpecialEntry(value: unknown, content: string): JsonRecord {
  return isObject(value) ? { ...value, special: true } : { content, special: true, normalized: false };
}

function readDecoderEntries(decoder: JsonRecord): JsonRecord[] {
  return Object.entries(decoder)
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([id, entry]) => {
      if (isObject(entry) && typeof entry.content === "string") return entry;
      throw new LlamaGymError(
        "FILE_CORRUPT",
        `tokenizer_config.json: added_tokens_decoder has ${JSON.stringify(entry)} for id ${id}, not a token.`,
      );
    });
}

/**
 * Returns the tokens of added_tokens.json in the order of their ids, as Transformers 5 does:
 * without those whose id belongs to a token of tokenizer.json. Only a name that is a string makes
 * its token match the text as it was written.
 */
function readLegacyEntries(
  addedTokens: JsonRecord,
  listed: readonly AddedToken[],
  config: JsonRecord,
  specialTokensMap: JsonRecord,
): JsonRecord[] {
  const contents = new Map<number, string>();
  for (const [content, id] of Object.entries(addedTokens)) {
    if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0)
      throw new LlamaGymError(
        "FILE_CORRUPT",
        `added_tokens.json: the id of ${JSON.stringify(content)} is ${JSON.stringify(id)}, expected an integer >= 0.`,
      );
    contents.set(id, content);
  }
  for (const { id } of listed) contents.delete(id);
  const extra = config.extra_special_tokens ?? config.additional_special_tokens;
  const strings = [
    ...roles.filter((role) => !(role in specialTokensMap)).map((role) => config[role]),
    ...(Array.isArray(extra) ? (extra as unknown[]) : []),
  ];
  const mapExtra = specialTokensMap.extra_special_tokens;
  const mapped = [
    ...roles.map((role) => specialTokensMap[role]),
    ...(Array.isArray(mapExtra) ? (mapExtra as unknown[]) : []),
  ];
  const named = new Set([...strings.filter((token) => typeof token === "string"), ...mapped.map(getTokenContent)]);
  const special = new Set([...named, ...[...strings, ...readModelTokens(config)].map(getTokenContent)]);
  return [...contents]
    .filter(([, content]) => content !== "")
    .sort(([a], [b]) => a - b)
    .map(([, content]) => ({ content, special: special.has(content), normalized: !named.has(content) }));
}

function readExtraTokens(config: JsonRecord): unknown[] {
  const extra = config.extra_special_tokens ?? config.additional_special_tokens;
  const list: unknown[] = Array.isArray(extra) ? extra : isObject(extra) ? Object.values(extra) : [];
  return [...readModelTokens(config), ...list].filter((token) => getTokenContent(token) !== null);
}

/** Returns tokens that only some models have, such as that of images. */
function readModelTokens({ model_specific_special_tokens: specific, ...config }: JsonRecord): unknown[] {
  const isNamed = ([name, value]: [string, unknown]) =>
    name.endsWith("_token") && !(roles as readonly string[]).includes(name) && typeof value === "string";
  const named = Object.entries(config).filter(isNamed);
  return [...named.map(([, value]) => value), ...(isObject(specific) ? Object.values(specific) : [])];
}

function findNextFreeId(vocabulary: ReadonlyMap<string, number>, added: readonly AddedToken[]): number {
  let nextId = 0;
  for (const id of vocabulary.values()) nextId = Math.max(nextId, id + 1);
  for (const { id } of added) nextId = Math.max(nextId, id + 1);
  return nextId;
}
