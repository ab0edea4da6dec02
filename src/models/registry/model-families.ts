import type { ModelEntry } from "./model-entry.js";

/** A family of models. An unregistered hub id is matched with the family member nearest in size. */
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
  { name: "Gemma 2", pattern: /gemma-2-/i },
  { name: "Granite 4", pattern: /granite-4\.\d-(?!h-)/i },
  { name: "Granite 3", pattern: /granite-3/i },
  { name: "OLMo 2", pattern: /olmo-2-/i },
  { name: "Pythia", pattern: /pythia-/i },
  { name: "Phi 3 and 4", pattern: /phi-(?:3|3\.5|4)-mini/i },
  { name: "Phi", pattern: /phi-(?:1|2)/i },
  { name: "Mistral", pattern: /mistral/i },
  { name: "GPT-2", pattern: /gpt-?2/i },
];

export function findFamily(id: string): ModelFamily | undefined {
  return families.find(({ pattern }) => pattern.test(id));
}

/** Parses the parameter count in an id, such as 1.5e9 for Qwen2-1.5B; undefined without one. */
export function parseParameterCount(id: string): number | undefined {
  const match = /(?:^|[^a-z0-9.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])/i.exec(id.split("/").at(-1)!);
  return match === null ? undefined : Number(match[1]) * (match[2].toLowerCase() === "b" ? 1e9 : 1e6);
}

/** Finds the nearest model of the same family in size; the smallest where the size is unknown. */
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
