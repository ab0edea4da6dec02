import { fs } from "#platform";
import { z } from "zod";
import { LlamaGymError } from "../core/errors.js";
import { describeIssue } from "../core/schema-issue.js";
import type { ServiceTraits } from "./probe-service.js";
import { readJson, writeJson } from "../core/files/json-file.js";

/** LoRA's alpha at every rank, as on Thinking Machines' service: the scaling is 32 / rank. */
export const SERVICE_LORA_ALPHA = 32;

const FILE = "tinker.json";
const VERSION = 1;

const count = z.int().min(0);

const serviceModel = z.object({
  baseUrl: z.string(),
  form: z.object({
    baseModel: z.string(),
    rank: z.int().min(1),
    seed: z.int(),
    trainAttn: z.boolean(),
    trainMlp: z.boolean(),
    trainUnembed: z.boolean(),
  }),
  /** Path of the adapter with its optimizer at the service. */
  statePath: z.string(),
  /** Path of the adapter for sampling. */
  samplerPath: z.string(),
  /** How the service was measured to compute. */
  traits: z
    .object({
      reduction: z.enum(["sum", "mean"]).optional(),
      losses: z.array(z.string()).readonly(),
      ppoBounds: z.tuple([z.number(), z.number()]).readonly().optional(),
      cispoBounds: z.tuple([z.number(), z.number()]).readonly().optional(),
      clipSettings: z.array(z.string()).readonly().optional(),
      severalTargets: z.enum(["one", "dense", "sparse"]).optional(),
      metrics: z.array(z.string()).readonly(),
      hasPromptLogProbs: z.boolean(),
      samplingError: z.number().optional(),
    })
    .optional(),
  /** Losses of the service that it was trained with; "linear" for any other by its derivative. */
  losses: z.array(z.string()).readonly().optional(),
  tokens: z.object({ prefilled: count, sampled: count, scored: count, trained: count }),
});

/** A trained model on a service: where it is, and what it is. */
export type ServiceModel = Omit<z.infer<typeof serviceModel>, "traits"> & {
  readonly traits?: ServiceTraits | undefined;
};

/** Whether a folder has a model that is on a service. */
export async function isServiceModelFolder(folder: string): Promise<boolean> {
  return fs.exists(fs.join(folder, FILE));
}

export async function writeServiceModel(folder: string, model: ServiceModel): Promise<void> {
  await writeJson(fs.join(folder, FILE), { version: VERSION, ...model });
}

/** @throws FILE_NOT_FOUND, FILE_CORRUPT */
export async function readServiceModel(folder: string): Promise<ServiceModel> {
  const path = fs.join(folder, FILE);
  const { data, error } = serviceModel.safeParse(await readJson(path));
  if (error === undefined) return data;
  throw new LlamaGymError("FILE_CORRUPT", `${path} is damaged: ${describeIssue(error.issues)}.`);
}
