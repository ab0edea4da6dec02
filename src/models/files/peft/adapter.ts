import { fs } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError } from "../../../core/files/file-errors.js";
import { readJson, writeJson } from "../../../core/files/json-file.js";
import { SafetensorsFile, writeSafetensors } from "../safetensors/index.js";
import {
  ADAPTER_DEFAULTS,
  formatAdapterConfig,
  hasModulePattern,
  parseAdapterConfig,
  type AdapterConfig,
} from "./adapter-config.js";

/** PEFT's file names. */
const ADAPTER_CONFIG_NAME = "adapter_config.json";
const ADAPTER_WEIGHTS_NAME = "adapter_model.safetensors";

/** Prefix of PEFT's tensor names. */
const TENSOR_PREFIX = "base_model.model.";

export interface AdapterTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** A stored adapter. */
export interface Adapter {
  readonly config: AdapterConfig;
  /**
   * Tensors by name without PEFT's prefix: `model.layers.0.self_attn.q_proj.lora_A.weight` [r, in],
   * `....lora_B.weight` [out, r], `....lora_embedding_A` and `B` for the embedding,
   * `....lora_magnitude_vector` [out], rows of tokens, and trained biases and the weights of
   * `modulesToSave` under their names in the model.
   */
  readonly tensors: ReadonlyMap<string, AdapterTensor>;
  /**
   * Weights of the base model that PEFT saves with an adapter of the embedding, or with
   * `save_embedding_layers`.
   */
  readonly baseWeights: ReadonlyMap<string, AdapterTensor>;
}

/** Whether a folder holds a PEFT adapter. */
export async function isAdapterFolder(folder: string): Promise<boolean> {
  return fs.exists(fs.join(folder, ADAPTER_CONFIG_NAME));
}

/** Reads the settings of an adapter. @throws as `readAdapter`, except for its tensors. */
export async function readAdapterConfig(folder: string): Promise<AdapterConfig> {
  const path = fs.join(folder, ADAPTER_CONFIG_NAME);
  return parseAdapterConfig(path, await readJson(path));
}

/**
 * Reads a LoRA adapter saved by PEFT or `writeAdapter`. @throws FILE_NOT_FOUND, FILE_CORRUPT,
 * MODEL_UNSUPPORTED for features beyond LoRA and DoRA, FORMAT_UNSUPPORTED.
 */
export async function readAdapter(folder: string): Promise<Adapter> {
  const config = await readAdapterConfig(folder);
  const { tensors, baseWeights } = await readTensors(folder, config);
  const modules = findAdaptedModules(fs.join(folder, ADAPTER_WEIGHTS_NAME), tensors);
  const listed = { targetModules: modules, layersToTransform: [], layersPattern: [], excludeModules: [] };
  return { config: hasModulePattern(config) ? { ...config, ...listed } : config, tensors, baseWeights };
}

async function readTensors(
  folder: string,
  { modulesToSave, bias }: AdapterConfig,
): Promise<Pick<Adapter, "tensors" | "baseWeights">> {
  const file = await openWeights(folder);
  try {
    const tensors = new Map<string, AdapterTensor>();
    const baseWeights = new Map<string, AdapterTensor>();
    for (const { name, shape } of file.entries.values()) {
      if (!name.startsWith(TENSOR_PREFIX))
        throw corruptFileError(file.path, `its tensor "${name}" does not begin with "${TENSOR_PREFIX}"`);
      // PEFT 0.9 wrote magnitudes with ".weight".
      const ownName = name
        .slice(TENSOR_PREFIX.length)
        .replace(/(?:\.token_adapter)?\.base_layer\./u, ".")
        .replace(/(\.lora_magnitude_vector)\.weight$/u, "$1");
      const isTrained =
        /\.lora_|\.trainable_tokens_delta$/u.test(ownName) ||
        (bias !== "none" && ownName.endsWith(".bias")) ||
        modulesToSave.some((module) => isOfModule(ownName, module));
      const target = isTrained ? tensors : baseWeights;
      target.set(ownName, { shape, data: await file.readFloat32(name) });
    }
    return { tensors, baseWeights };
  } finally {
    await file.close();
  }
}

/**
 * Whether a parameter belongs to a module of `modules_to_save`, whose path ends with the name, as
 * in PEFT.
 */
export const isOfModule = (parameter: string, name: string): boolean => parameter.includes(`${name}.`);

async function openWeights(folder: string): Promise<SafetensorsFile> {
  try {
    return await SafetensorsFile.open(fs.join(folder, ADAPTER_WEIGHTS_NAME));
  } catch (error) {
    const pickled = fs.join(folder, "adapter_model.bin");
    const onlyPickled = error instanceof LlamaGymError && error.code === "FILE_NOT_FOUND" && (await fs.exists(pickled));
    if (!onlyPickled) throw error;
    throw new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${pickled} is a pickle. Load it in PEFT and save it again to get ${ADAPTER_WEIGHTS_NAME}.`,
    );
  }
}

/** Returns the paths of modules with matching A and B. @throws FILE_CORRUPT when one is missing. */
function findAdaptedModules(path: string, tensors: ReadonlyMap<string, AdapterTensor>): string[] {
  const modules: string[] = [];
  for (const [name, { shape }] of tensors) {
    const match = /^(?<module>.*)\.lora_(?<form>(?:embedding_)?)(?<letter>[AB])(?<end>(?:\.weight)?)$/u.exec(name);
    if (match === null) continue;
    const { module, form, letter, end } = match.groups!;
    const counterpart = tensors.get(`${module}.lora_${form}${letter === "A" ? "B" : "A"}${end}`);
    if (counterpart === undefined) throw corruptFileError(path, `it contains "${name}" without its counterpart`);
    if (shape.length !== 2 || counterpart.shape.length !== 2) throw corruptFileError(path, `"${name}" is not a matrix`);
    if (letter === "B") continue;
    if (shape[0] !== counterpart.shape[1])
      throw corruptFileError(path, `the ranks of A and B of "${module}" are ${shape[0]} and ${counterpart.shape[1]}`);
    modules.push(module);
  }
  if (modules.length === 0) throw corruptFileError(path, "it contains no lora_A and lora_B");
  return modules;
}

/** Returns the last components of module paths, as PEFT writes them for "all-linear". */
function getModuleSuffixes(modules: readonly string[]): string[] {
  return [...new Set(modules.map((module) => module.slice(module.lastIndexOf(".") + 1)))].sort();
}

/**
 * Saves a LoRA adapter in the format of PEFT 0.21. Missing settings take PEFT's defaults;
 * "all-linear" is expanded. Returns the names of the files.
 * @throws FILE_WRITE_FAILED, FILE_CORRUPT for tensors that do not form an adapter.
 */
export async function writeAdapter(
  folder: string,
  config: Partial<AdapterConfig>,
  tensors: ReadonlyMap<string, AdapterTensor>,
): Promise<string[]> {
  const weightsPath = fs.join(folder, ADAPTER_WEIGHTS_NAME);
  const modules = findAdaptedModules(weightsPath, tensors);
  const adapted = new Set(modules);
  // PEFT's adapted modules contain those of the model.
  const toStoredName = (name: string) => {
    const match = /^(?<module>.*)\.(?<part>weight|bias)$/u.exec(name)?.groups;
    return match !== undefined && adapted.has(match.module) ? `${match.module}.base_layer.${match.part}` : name;
  };
  const fullConfig = { ...ADAPTER_DEFAULTS, ...config };
  const targetModules =
    fullConfig.targetModules === "all-linear" ? getModuleSuffixes(modules) : fullConfig.targetModules;
  await writeSafetensors(
    weightsPath,
    [...tensors].map(([name, { shape, data }]) => ({ name: `${TENSOR_PREFIX}${toStoredName(name)}`, shape, data })),
  );
  await writeJson(fs.join(folder, ADAPTER_CONFIG_NAME), formatAdapterConfig({ ...fullConfig, targetModules }));
  return [ADAPTER_WEIGHTS_NAME, ADAPTER_CONFIG_NAME];
}
