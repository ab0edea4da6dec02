import { invalidArgument } from "../../core/errors.js";
import type { DecoderConfig } from "../../engine/nn/index.js";
import { targetModules, type TargetModule } from "../architectures/index.js";
import { formatJson } from "../../core/files/json-file.js";
import type { LoraConfig } from "../files/index.js";
import type { LoraModule } from "./lora-module.js";

/**
 * Selects the modules to adapt as PEFT does. @throws INVALID_ARGUMENT for invalid values and for
 * targets that match nothing.
 */
export function selectLoraModules(config: DecoderConfig, lora: LoraConfig): Map<string, LoraModule> {
  checkLoraConfig(lora);
  const all = targetModules(config);
  const [isTarget, isInLayer, isExcluded] = [createTargetTest(lora), createLayerTest(lora), createExclusionTest(lora)];
  const targets = tieTargets(config, lora, all.filter(isTarget), all);
  const selected = targets.filter((module) => isInLayer(module) && !isExcluded(module));
  if (selected.length === 0) {
    const names = [...new Set(all.map(({ name }) => name.slice(name.lastIndexOf(".") + 1)))];
    const given = `\`targetModules\` ${formatJson(lora.targetModules)}`;
    throw invalidArgument(
      targets.length === 0
        ? `${given} matches no module of this model. Modules: ${names.join(", ")}.`
        : `\`layersToTransform\`, \`layersPattern\` and \`excludeModules\` leave none of the ${targets.length} modules that ${given} matches in ${config.layers.length} layers, counted from 0.`,
    );
  }
  return new Map(
    selected.map(({ name, kind, inFeatures, outFeatures }) => {
      const rank = findPatternValue("rankPattern", lora, name) ?? lora.r;
      const alpha = findPatternValue("alphaPattern", lora, name) ?? lora.loraAlpha;
      const scaling = alpha / (lora.useRslora ? Math.sqrt(rank) : rank);
      const { useDora, loraBias: hasBias } = lora;
      const tiesHead = kind === "embedding" && lora.ensureWeightTying && config.names.head === config.names.embedding;
      return [name, { module: name, kind, rank, scaling, inFeatures, outFeatures, useDora, hasBias, tiesHead }];
    }),
  );
}

/**
 * Replaces an adapter of a tied output matrix by one of the embedding where `ensureWeightTying` is
 * set, as PEFT does.
 */
function tieTargets(
  { names }: DecoderConfig,
  { ensureWeightTying, useDora }: LoraConfig,
  targets: readonly TargetModule[],
  all: readonly TargetModule[],
): readonly TargetModule[] {
  const isTied = names.head === names.embedding && targets.some(({ kind }) => kind !== "linear");
  if (!ensureWeightTying || !isTied) return targets;
  if (useDora)
    throw invalidArgument(
      "`useDora` scales the embedding and the output matrix differently, so `ensureWeightTying` cannot tie them. Remove one of them.",
    );
  return all.filter((module) => module.kind === "embedding" || (module.kind === "linear" && targets.includes(module)));
}

/** Larger than any useful rank, as a matrix of a model has at most so many rows or columns. */
const MAX_RANK = 2 ** 16;

function checkLoraConfig(lora: LoraConfig): void {
  const { r, loraAlpha, loraDropout, rankPattern, alphaPattern, targetModules: targets } = lora;
  if (lora.useDora && lora.loraBias)
    throw invalidArgument("`loraBias` does not apply with `useDora`, as in PEFT. Remove one of them.");
  for (const rank of [r, ...Object.values(rankPattern)]) {
    if (!Number.isInteger(rank) || rank < 1 || rank > MAX_RANK)
      throw invalidArgument(`A LoRA rank must be an integer from 1 to ${MAX_RANK}, got ${rank}.`);
  }
  for (const alpha of [loraAlpha, ...Object.values(alphaPattern)]) {
    if (!Number.isFinite(Math.fround(alpha)))
      throw invalidArgument(`\`loraAlpha\` must be a finite number, got ${alpha}.`);
  }
  if (!(loraDropout >= 0 && loraDropout < 1))
    throw invalidArgument(`\`loraDropout\` must be in [0, 1), got ${loraDropout}.`);
  const layers = [lora.layersToTransform].flat();
  const invalidLayer = layers.find((layer) => !Number.isInteger(layer) || layer < 0);
  if (invalidLayer !== undefined)
    throw invalidArgument(`\`layersToTransform\` must be integers >= 0, got ${invalidLayer}.`);
  if (layers.length === 0 && lora.layersPattern.length > 0)
    throw invalidArgument(
      "`layersPattern` names the list of layers for `layersToTransform`. Also set `layersToTransform`.",
    );
  if (layers.length > 0 && typeof targets === "string" && targets !== "all-linear")
    throw invalidArgument(
      "`layersToTransform` requires `targetModules` to be a list or all-linear, got a pattern. Select the layers in the pattern.",
    );
}

/**
 * Returns a test of whether a module is a target: by its path or the end of it, by a pattern, or as
 * one of all linear modules.
 */
function createTargetTest({ targetModules: targets }: LoraConfig): (module: TargetModule) => boolean {
  if (targets === "all-linear") return ({ kind }) => kind === "linear";
  return createNameTest("targetModules", targets);
}

function createExclusionTest({ excludeModules }: LoraConfig): (module: TargetModule) => boolean {
  return createNameTest("excludeModules", excludeModules);
}

/**
 * Returns a test of whether a module's path matches a pattern, or is or ends with one of a list of
 * names.
 */
function createNameTest(option: string, names: string | readonly string[]): (module: TargetModule) => boolean {
  if (typeof names === "string") {
    const pattern = compilePattern(option, `^(?:${names})$`);
    return ({ name }) => pattern.test(name);
  }
  const ends = new Set(names);
  return ({ name }) => {
    const parts = name.split(".");
    return parts.some((_, i) => ends.has(parts.slice(i).join(".")));
  };
}

/**
 * Returns a test of whether a module is in one of the layers to transform. The layer is the number
 * after the name of the list of layers; like PEFT, a module that `targetModules` lists with its
 * full path is in no need of a layer.
 */
function createLayerTest(lora: LoraConfig): (module: TargetModule) => boolean {
  const { layersToTransform, layersPattern, targetModules: targets } = lora;
  const layers = new Set(typeof layersToTransform === "number" ? [layersToTransform] : layersToTransform);
  if (layers.size === 0) return () => true;
  const lists = [layersPattern].flat().filter((name) => name !== "");
  const patterns = (lists.length === 0 ? ["[^.]*"] : lists).map((list) =>
    compilePattern("layersPattern", `^.*\\.(?:${list})\\.(\\d+)\\.`),
  );
  return ({ name }) => {
    if (typeof targets !== "string" && targets.includes(name)) return true;
    const match = patterns.map((pattern) => pattern.exec(name)).find((each) => each !== null);
    return match !== undefined && layers.has(Number(match[1]));
  };
}

/** Returns the value of the first pattern that matches the end of a module's path. */
function findPatternValue(
  option: "rankPattern" | "alphaPattern",
  { [option]: patterns }: LoraConfig,
  module: string,
): number | undefined {
  return Object.entries(patterns).find(([pattern]) =>
    compilePattern(option, `^(.*\\.)?(${pattern})$`).test(module),
  )?.[1];
}

function compilePattern(option: string, pattern: string): RegExp {
  try {
    return new RegExp(pattern);
  } catch (error) {
    throw invalidArgument(`\`${option}\` contains an invalid regular expression: ${(error as Error).message}.`);
  }
}
