import type { ModelEntry } from "./model-entry.js";

/** Models of one make; a hub id that is not listed is taken for the listed model of its family that is nearest in size. */
interface ModelFamily {
  readonly name: string;
  readonly pattern: RegExp;
}

const families: readonly ModelFamily[] = [
  { name: "SmolLM3", pattern: /smollm3/i },
  { name: "SmolLM2", pattern: /smollm2/i },
  { name: "SmolLM", pattern: /smollm-/i },
  { name: "Qwen3", pattern: /qwen3-/i },
  { name: "Qwen2.5", pattern: /qwen2\.5-/i },
  { name: "Qwen2", pattern: /qwen2-/i },
  { name: "TinyLlama", pattern: /tinyllama/i },
  { name: "Llama 3", pattern: /llama-3/i },
  { name: "Llama 2", pattern: /llama-2/i },
  { name: "Gemma 3", pattern: /gemma-3-/i },
  { name: "Phi 3 and 4", pattern: /phi-(?:3|3\.5|4)-mini/i },
  { name: "Phi", pattern: /phi-(?:1|2)/i },
  { name: "Mistral", pattern: /mistral/i },
  { name: "GPT-2", pattern: /gpt-?2/i },
];

/** The family that an id belongs to by its name. */
export function findFamily(id: string): ModelFamily | undefined {
  return families.find(({ pattern }) => pattern.test(id));
}

/** Parameters as an id tells them: 1.5e9 for Qwen2-1.5B; undefined where it does not. */
export function parseParameterCount(id: string): number | undefined {
  const match = /(?:^|[^a-z0-9.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])/i.exec(id.split("/").at(-1)!);
  return match === null ? undefined : Number(match[1]) * (match[2].toLowerCase() === "b" ? 1e9 : 1e6);
}

/** The model of the same family whose size is nearest; of unknown size the smallest. */
export function findNearestInFamily(id: string, entries: readonly ModelEntry[]): ModelEntry | undefined {
  const family = findFamily(id);
  if (family === undefined) return undefined;
  const targetCount = parseParameterCount(id) ?? 0;
  const distance = ({ parameters }: ModelEntry) => Math.abs(Math.log(parameters / Math.max(1, targetCount)));
  return entries
    .filter((entry) => findFamily(entry.id) === family)
    .sort((a, b) => distance(a) - distance(b))
    .at(0);
}
