import { readJsonField } from "./read-json-field.js";
import type { RowFields } from "./read-rows.js";
import type { TokenExample } from "./sft-example.js";

/** Masks of tokens, by TRL's names; a token is trained if each mask that is there has it. */
const MASK_KEYS = ["mask", "completion_mask", "assistant_masks"];

/** Columns of tokenized rows. */
export const TOKEN_KEYS = [
  "tokens",
  "input_ids",
  "labels",
  "attention_mask",
  ...MASK_KEYS,
  "position_ids",
  "seq_lengths",
];

/** A label that is not trained, as in PyTorch. */
const IGNORED_LABEL = -100;

/**
 * Reads tokens with `mask`, or `input_ids` as Transformers and TRL write them: with `labels`, which
 * are -100 for tokens that are not trained, with masks, or alone, in which case all tokens are
 * trained. @throws Error with the reason.
 */
export function readTokenExample(fields: RowFields): TokenExample {
  const key = fields.input_ids === undefined ? "tokens" : "input_ids";
  const tokens = readIntegers(fields, key);
  const columns = ["labels", "attention_mask", ...MASK_KEYS].filter((name) => fields[name] !== undefined);
  if (key === "tokens" && columns.length === 0)
    throw new Error('"tokens" and "mask" must be arrays of integers of equal length.');
  const values = Object.fromEntries(columns.map((name) => [name, readIntegers(fields, name)]));
  for (const name of columns)
    if (values[name].length !== tokens.length)
      throw new Error(`"${key}" and "${name}" must be arrays of integers of equal length.`);
  checkUnpacked(fields, tokens.length);
  const { labels, attention_mask: attention } = values;
  const padding = attention?.indexOf(0) ?? -1;
  if (padding >= 0) throw new Error(`token ${padding + 1} is padding ("attention_mask" is 0). Remove the padding.`);
  const other = labels?.findIndex((label, i) => label !== IGNORED_LABEL && label !== tokens[i]) ?? -1;
  if (other >= 0)
    throw new Error(`label ${other + 1} must be the token itself (${tokens[other]}) or -100, got ${labels[other]}.`);
  const masks = MASK_KEYS.flatMap((name) => (values[name] === undefined ? [] : [values[name]]));
  const isTrained = (i: number) => labels?.[i] !== IGNORED_LABEL && masks.every((mask) => mask[i] !== 0);
  return { tokens, lossMask: tokens.map((_, i) => (isTrained(i) ? 1 : 0)) };
}

/** @throws Error for several examples that are packed into a row. */
function checkUnpacked(fields: RowFields, length: number): void {
  const positions = fields.position_ids === undefined ? [] : readIntegers(fields, "position_ids");
  const lengths = fields.seq_lengths === undefined ? [length] : readIntegers(fields, "seq_lengths");
  if (lengths.length !== 1 || positions.some((position, i) => position !== i))
    throw new Error(
      "it has several packed examples. Write one example per row, rows are packed when they are trained.",
    );
}

function readIntegers(fields: RowFields, name: string): readonly number[] {
  const list = readJsonField(name, fields[name]);
  if (Array.isArray(list) && list.every((item): item is number => Number.isSafeInteger(item))) return list;
  const partner =
    name === "tokens" || name === "mask"
      ? '"tokens" and "mask" must be arrays of integers of equal length'
      : `"${name}" must be an array of integers`;
  throw new Error(`${partner}.`);
}
