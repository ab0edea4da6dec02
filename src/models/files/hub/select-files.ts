import { LlamaGymError } from "../../../core/errors.js";
import { WEIGHTS_INDEX_NAME, WEIGHTS_NAME } from "../safetensors/index.js";

/** Which files of a model are needed. */
export interface FileSelection {
  readonly kind: "folder" | "gguf";
  /** Paths in the repository; of a split GGUF file all parts, in order. */
  readonly files: readonly string[];
  /** The index whose shards are needed as well, once it has been read. */
  readonly index?: string;
}

/** Small files that a model folder is read with. */
const configFilePattern =
  /^(?:config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template|adapter_config|value_head)\.json$|^(?:chat_template\.jinja|merges\.txt)$|^additional_chat_templates\/[\w.-]+\.jinja$/u;

/** Chooses what to fetch of `paths` for `file` (a path, a quantisation or undefined). Throws HUB_NOT_FOUND, FORMAT_UNSUPPORTED. */
export function selectFiles(id: string, paths: readonly string[], file: string | undefined): FileSelection {
  if (file !== undefined) return { kind: "gguf", files: selectGguf(id, paths, file) };
  const configFiles = paths.filter((path) => configFilePattern.test(path));
  const weights = paths.filter((path) => path.endsWith(".safetensors") && !path.includes("/"));
  if (configFiles.includes("adapter_config.json") && !configFiles.includes("config.json")) {
    return { kind: "folder", files: [...configFiles, ...weights] };
  }
  if (paths.includes(WEIGHTS_INDEX_NAME)) {
    return { kind: "folder", files: [...configFiles, WEIGHTS_INDEX_NAME], index: WEIGHTS_INDEX_NAME };
  }
  if (weights.includes(WEIGHTS_NAME)) return { kind: "folder", files: [...configFiles, WEIGHTS_NAME] };
  if (weights.length === 1 && configFiles.includes("config.json"))
    return { kind: "folder", files: [...configFiles, ...weights] };
  const groups = groupGgufFiles(paths);
  if (groups.length === 1) return { kind: "gguf", files: groups[0] };
  if (groups.length > 1) {
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      `${id} holds ${groups.length} GGUF files. Choose one, as ${id}:FILE or ${id}#QUANTISATION: ${formatGroups(groups)}.`,
    );
  }
  throw noWeightsError(id, paths);
}

function noWeightsError(id: string, paths: readonly string[]): LlamaGymError {
  if (paths.some((path) => /\.(?:bin|pt|pth|h5|msgpack|onnx)$/u.test(path))) {
    return new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${id} has its weights neither as safetensors nor as GGUF. Look for a revision or a copy that has, or convert it.`,
    );
  }
  return new LlamaGymError("HUB_NOT_FOUND", `${id} holds no weights (safetensors or GGUF).`);
}

/** The GGUF models among the paths: single files, and the parts of split ones together. Projectors of images are left out. */
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
  const available = groups.length === 0 ? "It holds no GGUF file." : `It holds ${formatGroups(groups)}.`;
  const fault =
    byName.length === 0
      ? `has no GGUF file "${fileOrQuantization}"`
      : `has several GGUF files for "${fileOrQuantization}"`;
  throw new LlamaGymError("HUB_NOT_FOUND", `${id} ${fault}. ${available}`);
}
