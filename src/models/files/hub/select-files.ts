import { LlamaGymError } from "../../../core/errors.js";
import { WEIGHTS_INDEX_NAME, WEIGHTS_NAME } from "../safetensors/index.js";

/** Files needed to open a model. */
export interface FileSelection {
  readonly kind: "folder" | "gguf";
  /** Paths in the repository; all parts of a split GGUF file in order. */
  readonly files: readonly string[];
  /** Index whose shards are needed as well. */
  readonly index?: string;
}

/** Configuration files of a model folder. */
const configFilePattern =
  /^(?:config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template|adapter_config|value_head)\.json$|^(?:chat_template\.jinja|merges\.txt)$|^additional_chat_templates\/[\w.-]+\.jinja$/u;

/**
 * Selects the files to download for `file` (a path, a quantization or undefined). @throws
 * HUB_NOT_FOUND, FORMAT_UNSUPPORTED, INVALID_ARGUMENT.
 */
export function selectFiles(id: string, paths: readonly string[], file: string | undefined): FileSelection {
  if (file !== undefined) return { kind: "gguf", files: selectGguf(id, paths, file) };
  const configFiles = paths.filter((path) => configFilePattern.test(path));
  const weights = paths.filter((path) => path.endsWith(".safetensors") && !path.includes("/"));
  if (configFiles.includes("adapter_config.json") && !configFiles.includes("config.json"))
    return { kind: "folder", files: [...configFiles, ...weights] };
  if (weights.includes(WEIGHTS_NAME)) return { kind: "folder", files: [...configFiles, WEIGHTS_NAME] };
  if (paths.includes(WEIGHTS_INDEX_NAME))
    return { kind: "folder", files: [...configFiles, WEIGHTS_INDEX_NAME], index: WEIGHTS_INDEX_NAME };
  if (weights.length === 1 && configFiles.includes("config.json"))
    return { kind: "folder", files: [...configFiles, ...weights] };
  const groups = groupGgufFiles(paths);
  if (groups.length === 1) return { kind: "gguf", files: groups[0] };
  if (groups.length > 1)
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${id} contains ${groups.length} GGUF files. Select one with ${id}:FILE or ${id}#QUANTIZATION: ${formatGroups(groups)}.`,
    );
  throw noWeightsError(id, paths);
}

function noWeightsError(id: string, paths: readonly string[]): LlamaGymError {
  if (paths.some((path) => /\.(?:bin|pt|pth|h5|msgpack|onnx)$/u.test(path))) {
    return new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${id} has weights neither in safetensors nor in GGUF format. Find another revision or copy, or convert it.`,
    );
  }
  return new LlamaGymError("HUB_NOT_FOUND", `${id} contains no weights (safetensors or GGUF).`);
}

/** Groups GGUF paths by model, with all parts of split files; excludes vision projectors. */
function groupGgufFiles(paths: readonly string[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const path of [...paths].sort()) {
    if (!path.endsWith(".gguf") || /mmproj|imatrix/iu.test(path)) continue;
    const key = path.replace(/-\d{5}-of-(\d{5})\.gguf$/u, "-of-$1.gguf");
    groups.set(key, [...(groups.get(key) ?? []), path]);
  }
  return [...groups.values()];
}

function formatGroups(groups: readonly (readonly string[])[]): string {
  return groups.map(([first]) => first).join(", ");
}

function selectGguf(id: string, paths: readonly string[], fileOrQuantization: string): readonly string[] {
  const groups = groupGgufFiles(paths);
  const byPath = groups.find((group) => group.includes(fileOrQuantization));
  if (byPath !== undefined) return byPath;
  if (paths.includes(fileOrQuantization) && fileOrQuantization.endsWith(".gguf")) return [fileOrQuantization];
  const label = fileOrQuantization.replaceAll(/[^\w]/gu, String.raw`\$&`);
  const byName = groups.filter(([first]) => new RegExp(`(?:^|[-._/])${label}(?:[-./]|$)`, "iu").test(first));
  if (byName.length === 1) return byName[0];
  const available = groups.length === 0 ? "It contains no GGUF file." : `It contains ${formatGroups(groups)}.`;
  const fault =
    byName.length === 0
      ? `has no GGUF file "${fileOrQuantization}"`
      : `has several GGUF files for "${fileOrQuantization}"`;
  throw new LlamaGymError("HUB_NOT_FOUND", `${id} ${fault}. ${available}`);
}
